//! The words of ascertain as types, and the judge.
//!
//! Everything in this crate is a pure function of its arguments: no I/O, no clock, no environment. A verdict that
//! was reached once is reached again, on another machine, from the same evidence. That is what makes a stored
//! capture worth keeping and a golden test worth trusting.
//!
//! The flow is one way: an engine reads a [`Capture`] into a [`Case`] (claims, evidence, interventions, gaps), the
//! [`judge`](judge::judge) turns the case into a [`Judgement`], and the binary renders it.

pub mod capture;
pub mod case;
pub mod judge;
pub mod report;
pub mod service;
pub mod value;
pub mod wants;

pub use capture::{Capture, Manifest};
pub use case::{
    Act, Asked, Case, Claim, EffectSpec, Evidence, Finding, Gap, Intervention, Locus, Origin, Rung, Seen, Severity,
    Standing, StartId, State, Subject, Tally, Unasked, Voice, WitnessNote, WitnessState,
};
pub use judge::{Judged, Judgement, Verdict, Whole, judge};
pub use value::Value;
