//! Which start of which unit, and by which fields its entries are known.

use crate::filter::Match;
use crate::id::Id128;

/// sd-messages.h: SD_MESSAGE_JOURNAL_DROPPED, "Suppressed N messages from …".
const SUPPRESSED: &str = "a596d6fe7bfa4994828e72309e95d61e";

/// Which service manager started a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    /// PID 1.
    System,
    /// The manager of the user with this id.
    User(u32),
}

/// Which start is meant, and by which fields its entries are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Which {
    pub(crate) unit: String,
    pub(crate) manager: Manager,
    pub(crate) invocation: Id128,
}

impl Which {
    pub(crate) fn lines(&self) -> Match {
        Match::Any(vec![self.own_lines(), self.manager_lines()])
    }

    pub(crate) fn own_lines(&self) -> Match {
        Match::field("_SYSTEMD_INVOCATION_ID", self.invocation.to_string())
    }

    pub(crate) fn manager_lines(&self) -> Match {
        let field = match self.manager {
            Manager::System => "INVOCATION_ID",
            Manager::User(_) => "USER_INVOCATION_ID",
        };
        Match::field(field, self.invocation.to_string()).and(Self::said_about(&self.unit, self.manager))
    }

    /// What a manager itself says about a unit, of any of its starts.
    pub(crate) fn said_about(unit: &str, manager: Manager) -> Match {
        Match::All(match manager {
            Manager::System => vec![Match::field("UNIT", unit), Match::field("_PID", "1")],
            Manager::User(uid) => vec![
                Match::field("USER_UNIT", unit),
                Match::field("_UID", uid.to_string()),
                Match::field("_COMM", "systemd"),
            ],
        })
    }

    /// What journald says about messages of the unit, of any of its starts, that its rate limit dropped.
    pub(crate) fn suppressions(&self) -> Match {
        let object = match self.manager {
            Manager::System => "OBJECT_SYSTEMD_UNIT",
            Manager::User(_) => "OBJECT_SYSTEMD_USER_UNIT",
        };
        Match::field("MESSAGE_ID", SUPPRESSED).and(Match::field(object, &self.unit))
    }
}
