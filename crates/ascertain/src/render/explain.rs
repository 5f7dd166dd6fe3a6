//! The ladder of one setting: every rung, and what was seen on it.

use super::{Paint, sign, spoken, text, wrap};
use ascertain_model::Rung;
use ascertain_model::report::{ClaimLine, Report};
use std::io::{self, Write};

/// Writes the ladder of one claim, highest rung first.
pub fn write(report: &Report, claim: &ClaimLine, paint: Paint, out: &mut dyn Write) -> io::Result<()> {
    let verdict = spoken(claim.verdict);
    writeln!(
        out,
        "{}  wanted {}, in force {}",
        paint.verdict(claim.verdict, &format!("{} {}: {verdict}", sign(claim.verdict), claim.setting)),
        claim.wanted,
        claim.effective.as_deref().unwrap_or("not seen"),
    )?;
    let version = report.engine.version.as_deref().unwrap_or("release not stated");
    writeln!(out, "{}", paint.dim(&format!("{} {version}, {}", report.engine.name, report.target.name)))?;
    for origin in &claim.origin {
        let weight = if origin.overridden { " (has less weight)" } else { "" };
        writeln!(out, "asked for: {} = {}{weight}", origin.place, origin.value)?;
    }
    let mut paragraph = |lead: &str, text: &str| -> io::Result<()> {
        for (index, line) in wrap(text, paint.width.saturating_sub(lead.chars().count())).into_iter().enumerate() {
            writeln!(out, "{}{line}", if index == 0 { lead.to_string() } else { " ".repeat(lead.chars().count()) })?;
        }
        Ok(())
    };
    if let Some(broken) = &claim.broken {
        paragraph("broke:     ", &format!("between {} and {}: {}", broken.between[0], broken.between[1], broken.diagnosis))?;
    }
    if let Some(by) = &claim.by {
        paragraph("because:   ", &by.text)?;
        if let (Some(locus), Some(excerpt)) = (&by.locus, &by.excerpt) {
            let source = by.source.as_ref().map(|source| format!("  [{source}]")).unwrap_or_default();
            paragraph("           │ ", &format!("{} {} (bytes {}–{}): {excerpt}{source}", locus.artifact, locus.label, locus.bytes[0], locus.bytes[1]))?;
        }
    }
    if let Some(lacking) = &claim.lacking {
        paragraph("lacking:   ", lacking)?;
    }
    if let Some(remedy) = &claim.remedy {
        paragraph("→ ", remedy)?;
    }
    writeln!(out)?;
    for rung in Rung::ALL.iter().rev() {
        let mine: Vec<_> = claim.evidence.iter().filter(|evidence| evidence.rung == *rung).collect();
        if mine.is_empty() {
            writeln!(out, "{}", paint.dim(&format!("  {:12}  nothing seen", rung.name())))?;
        } else {
            writeln!(out, "{}", paint.bold(&format!("  {}", rung.name())))?;
        }
        for evidence in mine {
            text::evidence_line(evidence, paint, false, out)?;
            let [start, end] = evidence.locus.bytes;
            let mut note = format!("{} says it, bytes {start}–{end}", evidence.witness);
            if let Some(why) = &evidence.note {
                note.push_str(&format!("; {why}"));
            }
            for line in wrap(&note, paint.width.saturating_sub(18)) {
                writeln!(out, "                  {}", paint.dim(&line))?;
            }
        }
    }
    if let Some(effect) = &claim.effect {
        writeln!(out)?;
        writeln!(
            out,
            "{}  {}",
            paint.verdict(effect.verdict, &format!("{} effect: {}", sign(effect.verdict), spoken(effect.verdict))),
            effect.is
        )?;
        for line in wrap(&effect.text, paint.width.saturating_sub(4)) {
            writeln!(out, "    {line}")?;
        }
        for evidence in &effect.evidence {
            text::evidence_line(evidence, paint, false, out)?;
        }
    }
    Ok(())
}
