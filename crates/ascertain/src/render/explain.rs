//! The ladder of one setting: every rung, and what was seen on it.

use super::{Paint, sign, spoken, wrap};
use ascertain_engines::text::safe;
use ascertain_model::report::{ClaimLine, EvidenceLine, Report};
use ascertain_model::{Rung, Voice};
use std::io::{self, Write};

/// Writes the ladder of one claim, highest rung first.
pub fn write(report: &Report, claim: &ClaimLine, paint: Paint, out: &mut dyn Write) -> io::Result<()> {
    head(report, claim, paint, out)?;
    writeln!(out)?;
    for rung in Rung::ALL.iter().rev() {
        let mine: Vec<&EvidenceLine> = claim.evidence.iter().filter(|evidence| evidence.rung == *rung).collect();
        if mine.is_empty() {
            writeln!(out, "{}", paint.dim(&format!("{:12}  nothing seen", rung.name())))?;
            continue;
        }
        writeln!(out, "{}", paint.bold(rung.name()))?;
        evidence(&mine, paint, out)?;
    }
    if let Some(effect) = &claim.effect {
        writeln!(out)?;
        let title = format!("{} effect: {}", sign(effect.verdict), spoken(effect.verdict));
        writeln!(out, "{}  {}", paint.verdict(effect.verdict, &title), effect.is)?;
        paragraph("  ", &effect.text, paint, out)?;
        let all: Vec<&EvidenceLine> = effect.evidence.iter().collect();
        evidence(&all, paint, out)?;
    }
    Ok(())
}

fn head(report: &Report, claim: &ClaimLine, paint: Paint, out: &mut dyn Write) -> io::Result<()> {
    let title = format!("{} {}: {}", sign(claim.verdict), safe(&claim.setting), spoken(claim.verdict));
    let values = format!("wanted {}, in force {}", claim.wanted, claim.effective.as_deref().unwrap_or("not seen"));
    writeln!(out, "{}", paint.verdict(claim.verdict, &title))?;
    paragraph("", &values, paint, out)?;
    let version = report.engine.version.as_deref().unwrap_or("release not stated");
    paragraph("", &format!("{} {version}, {}", report.engine.name, report.target.name), paint, out)?;
    for origin in &claim.origin {
        let weight = if origin.overridden { " (has less weight)" } else { "" };
        paragraph("asked for: ", &format!("{} = {}{weight}", origin.place, origin.value), paint, out)?;
    }
    if let Some(broken) = &claim.broken {
        let text = format!("between {} and {}: {}", broken.between[0], broken.between[1], broken.diagnosis);
        paragraph("broke:     ", &text, paint, out)?;
    }
    if let Some(by) = &claim.by {
        if claim.broken.as_ref().is_none_or(|broken| broken.diagnosis != by.text) {
            paragraph("because:   ", &by.text, paint, out)?;
        }
        if let (Some(locus), Some(excerpt)) = (&by.locus, &by.excerpt) {
            let [start, end] = locus.bytes;
            let text = format!("{} {}, bytes {start}–{end}: {excerpt}", locus.artifact, locus.label);
            paragraph("           │ ", &text, paint, out)?;
        }
        if let Some(source) = &by.source {
            paragraph("in source: ", source, paint, out)?;
        }
    }
    if !claim.nearest.is_empty() {
        paragraph("nearest:   ", &claim.nearest.join(", "), paint, out)?;
    }
    if let Some(lacking) = &claim.lacking {
        paragraph("lacking:   ", lacking, paint, out)?;
    }
    if let Some(remedy) = &claim.remedy {
        paragraph("→ ", remedy, paint, out)?;
    }
    Ok(())
}

/// Text behind a lead, wrapped and indented under itself.
fn paragraph(lead: &str, text: &str, paint: Paint, out: &mut dyn Write) -> io::Result<()> {
    let indent = lead.chars().count();
    let again = if lead.trim_end().ends_with('│') { lead.to_string() } else { " ".repeat(indent) };
    for (index, line) in wrap(text, paint.width.saturating_sub(indent)).into_iter().enumerate() {
        writeln!(out, "{}{line}", if index == 0 { lead } else { &again })?;
    }
    Ok(())
}

/// What several witnesses, or several elements of one answer, say alike is said once.
fn evidence(all: &[&EvidenceLine], paint: Paint, out: &mut dyn Write) -> io::Result<()> {
    let mut groups: Vec<(&EvidenceLine, usize)> = Vec::new();
    for one in all {
        let alike = |other: &EvidenceLine| {
            other.witness == one.witness
                && other.voice == one.voice
                && other.value == one.value
                && other.note == one.note
                && other.locus.artifact == one.locus.artifact
                && other.locus.label.starts_with('/') == one.locus.label.starts_with('/')
        };
        match groups.iter_mut().find(|(other, _)| alike(other)) {
            Some((_, count)) => *count += 1,
            None => groups.push((one, 1)),
        }
    }
    for (one, count) in groups {
        let [start, end] = one.locus.bytes;
        let more = if count > 1 { format!(" and {} more like it", count - 1) } else { String::new() };
        let stale = if one.stale { ", of another start" } else { "" };
        let place = format!("{} {}, bytes {start}–{end}{more}{stale}", one.locus.artifact, one.locus.label);
        paragraph("  ", &format!("{}  ({})", one.value, one.witness), paint, out)?;
        paragraph("    ", &place, paint, out)?;
        if !one.excerpt.is_empty() && one.excerpt != one.value {
            paragraph("    │ ", &one.excerpt, paint, out)?;
        }
        let voice = match one.voice {
            Voice::Effective => None,
            Voice::Echo => Some("repeats the request, so it confirms nothing"),
            Voice::Constant => Some("never changes, so it confirms nothing"),
        };
        let note = [voice.map(str::to_string), one.note.clone()].into_iter().flatten().collect::<Vec<_>>().join("; ");
        if !note.is_empty() {
            for line in wrap(&note, paint.width.saturating_sub(4)) {
                writeln!(out, "    {}", paint.dim(&line))?;
            }
        }
    }
    Ok(())
}
