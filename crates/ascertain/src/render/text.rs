//! For people: the answer first, what is wrong before what is right, aligned, quiet when all is well.

use super::{Paint, fit, sign, spoken, wrap};
use ascertain_model::report::{ClaimLine, EvidenceLine, Report};
use ascertain_model::{Severity, WitnessState};
use std::io::{self, Write};

/// Writes a report.
pub fn write(report: &Report, paint: Paint, verbose: bool, out: &mut dyn Write) -> io::Result<()> {
    head(report, paint, out)?;
    table(report, paint, verbose, out)?;
    unasked(report, paint, out)?;
    findings(report, paint, verbose, out)?;
    witnesses(report, paint, verbose, out)
}

fn head(report: &Report, paint: Paint, out: &mut dyn Write) -> io::Result<()> {
    let word = spoken(report.verdict).to_uppercase();
    for (index, line) in wrap(&report.answer, paint.width.saturating_sub(word.len() + 4)).into_iter().enumerate() {
        if index == 0 {
            let first = format!("{} {word}", sign(report.verdict));
            writeln!(out, "{}  {line}", paint.verdict(report.verdict, &first))?;
        } else {
            writeln!(out, "{}{line}", " ".repeat(word.len() + 4))?;
        }
    }
    let mut facts = vec![report.engine.name.clone()];
    match &report.engine.version {
        Some(version) => facts.push(version.clone()),
        None => facts.push("release not stated".to_string()),
    }
    if let Some(pid) = report.target.pid {
        facts.push(format!("pid {pid}"));
    }
    if let Some(host) = &report.target.host {
        facts.push(format!("on {host}"));
    }
    let mut names: Vec<&str> = report.target.unit.as_deref().into_iter().collect();
    let name = report.target.name.as_str();
    let is_unit = names.iter().any(|unit| *unit == name || unit.strip_suffix(".service") == Some(name));
    if !name.starts_with("pid:") && !name.is_empty() && !is_unit {
        names.push(name);
    }
    if !names.is_empty() {
        facts.push(format!("({})", names.join(", ")));
    }
    writeln!(out, "{}", paint.dim(&fit(&facts.join(" "), paint.width)))
}

/// What is wrong first; within a kind, in the order in which it was asked.
fn rank(claim: &ClaimLine) -> u8 {
    let of = |word: &str| match word {
        "contradicted" | "divided" => 0,
        "unknown" => 1,
        "stale" | "unproven" => 2,
        "not_applicable" => 3,
        "adjusted" => 4,
        _ => 5,
    };
    of(claim.verdict).min(claim.effect.as_ref().map_or(9, |effect| of(effect.verdict)))
}

fn table(report: &Report, paint: Paint, verbose: bool, out: &mut dyn Write) -> io::Result<()> {
    if report.claims.is_empty() {
        return Ok(());
    }
    let mut claims: Vec<&ClaimLine> = report.claims.iter().collect();
    claims.sort_by_key(|claim| rank(claim));
    let longest = |pick: &dyn Fn(&ClaimLine) -> usize, least: usize, most: usize| {
        claims.iter().map(|claim| pick(claim)).max().unwrap_or(0).clamp(least, most)
    };
    // setting, wanted, in force, verdict with its rung: "confirmed, acknowledged" takes 23.
    let verdict = 23;
    let setting = longest(&|claim| claim.setting.chars().count(), 7, 26.min(paint.width / 3));
    let room = paint.width.saturating_sub(2 + setting + 2 + 2 + 2 + verdict);
    let in_force = longest(&|claim| effective(claim).chars().count(), 8, (room / 2).max(8));
    let wanted = longest(&|claim| claim.wanted.chars().count(), 6, room.saturating_sub(in_force).max(6));
    writeln!(out)?;
    let heading = format!("  {:setting$}  {:wanted$}  {:in_force$}  VERDICT", "SETTING", "WANTED", "IN FORCE");
    writeln!(out, "{}", paint.dim(&heading))?;
    for claim in claims {
        let words = match claim.rung {
            Some(rung) => format!("{}, {rung}", spoken(claim.verdict)),
            None => spoken(claim.verdict),
        };
        writeln!(
            out,
            "{} {:setting$}  {:wanted$}  {:in_force$}  {}",
            paint.verdict(claim.verdict, sign(claim.verdict)),
            fit(&claim.setting, setting),
            fit(&claim.wanted, wanted),
            fit(&effective(claim), in_force),
            paint.verdict(claim.verdict, &words),
        )?;
        details(claim, paint, verbose, matches!(report.invocation.state, "failed" | "impostor"), out)?;
    }
    Ok(())
}

fn effective(claim: &ClaimLine) -> String {
    match &claim.effective {
        Some(value) if *value == claim.wanted && value.chars().count() > 12 => "the same".to_string(),
        Some(value) => value.clone(),
        None => "–".to_string(),
    }
}

fn details(claim: &ClaimLine, paint: Paint, verbose: bool, report_failed: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut say = |text: &str, lead: &str| -> io::Result<()> {
        let indent = 4 + lead.chars().count();
        for (index, line) in wrap(text, paint.width.saturating_sub(indent)).into_iter().enumerate() {
            let lead = if index == 0 { lead.to_string() } else { " ".repeat(lead.chars().count()) };
            writeln!(out, "    {lead}{line}")?;
        }
        Ok(())
    };
    if let Some(effect) = claim.effect.as_ref().filter(|_| !report_failed) {
        let text = format!("{}: {} ({})", effect.is, spoken(effect.verdict), effect.text);
        say(&text, &format!("{} ", sign(effect.verdict)))?;
    }
    // What the head says already need not be said under every setting.
    let nothing_new = report_failed && claim.verdict == "unproven" && claim.broken.is_none();
    if nothing_new {
        return Ok(());
    }
    if claim.verdict != "confirmed" {
        let from = claim.origin.first().map(|origin| format!("asked for in {}", origin.place));
        if let Some(broken) = &claim.broken {
            say(&format!("{} ≠ {}: {}", broken.between[0], broken.between[1], broken.diagnosis), "")?;
        } else if let Some(by) = &claim.by {
            say(&by.text, "")?;
        } else if let Some(lacking) = &claim.lacking {
            say(lacking, "")?;
        }
        if !claim.nearest.is_empty() {
            say(&format!("nearest: {}", claim.nearest.join(", ")), "")?;
        }
        if claim.verdict == "unknown" && claim.by.is_none() {
            say(
                &format!(
                    "no such setting in this release{}",
                    from.map(|from| format!(" ({from})")).unwrap_or_default()
                ),
                "",
            )?;
        }
        if let Some(by) = &claim.by
            && let (Some(locus), Some(excerpt)) = (&by.locus, &by.excerpt)
        {
            say(&format!("{} {}: {excerpt}", locus.artifact, locus.label), "│ ")?;
        }
    }
    for origin in claim.origin.iter().filter(|origin| origin.overridden) {
        say(&format!("{} asked for {}, which has less weight", origin.place, origin.value), "")?;
    }
    if let Some(remedy) = &claim.remedy {
        say(remedy, "→ ")?;
    }
    if verbose {
        for evidence in &claim.evidence {
            evidence_line(evidence, paint, out)?;
        }
        for evidence in claim.effect.iter().flat_map(|effect| &effect.evidence) {
            evidence_line(evidence, paint, out)?;
        }
    }
    Ok(())
}

/// One piece of evidence, on one or two lines.
fn evidence_line(evidence: &EvidenceLine, paint: Paint, out: &mut dyn Write) -> io::Result<()> {
    let voice = match evidence.voice {
        ascertain_model::Voice::Effective => "",
        ascertain_model::Voice::Echo => " (repeats the request)",
        ascertain_model::Voice::Constant => " (never changes)",
    };
    let stale = if evidence.stale { " (of another start)" } else { "" };
    let place = format!("{} {}", evidence.locus.artifact, evidence.locus.label);
    let rung = evidence.rung.name();
    let first = format!("{rung:12}  {}{voice}{stale}  {}", evidence.value, place.trim());
    writeln!(out, "    {}", paint.dim(&fit(&first, paint.width.saturating_sub(4))))?;
    if !evidence.excerpt.is_empty() && evidence.excerpt != evidence.value {
        for line in wrap(&evidence.excerpt, paint.width.saturating_sub(20)) {
            writeln!(out, "                  {}", paint.dim(&format!("│ {line}")))?;
        }
    }
    Ok(())
}

fn unasked(report: &Report, paint: Paint, out: &mut dyn Write) -> io::Result<()> {
    if report.unasked.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", paint.bold("In force although nobody asked"))?;
    for one in &report.unasked {
        let why = one.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let text = format!("{} = {} (default {}){why}", one.setting, one.effective, one.default);
        for (index, line) in wrap(&text, paint.width.saturating_sub(2)).into_iter().enumerate() {
            writeln!(out, "{}{line}", if index == 0 { "! " } else { "  " })?;
        }
    }
    Ok(())
}

fn findings(report: &Report, paint: Paint, verbose: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut shown: Vec<_> =
        report.findings.iter().filter(|finding| verbose || finding.severity > Severity::Info).collect();
    shown.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let hidden = report.findings.len() - shown.len();
    if !shown.is_empty() {
        writeln!(out, "\n{}", paint.bold("Also found"))?;
    }
    for finding in shown {
        let (lead, word) = match finding.severity {
            Severity::Error => ("✗ ", "contradicted"),
            Severity::Warning => ("! ", "unproven"),
            Severity::Info => ("· ", "adjusted"),
        };
        for (index, line) in wrap(&finding.text, paint.width.saturating_sub(2)).into_iter().enumerate() {
            let lead = if index == 0 { paint.verdict(word, lead) } else { "  ".to_string() };
            writeln!(out, "{lead}{line}")?;
        }
        for evidence in finding.evidence.iter().filter(|_| verbose) {
            let text = format!("{} {}: {}", evidence.locus.artifact, evidence.locus.label, evidence.excerpt);
            for line in wrap(&text, paint.width.saturating_sub(4)) {
                writeln!(out, "  {}", paint.dim(&format!("│ {line}")))?;
            }
        }
    }
    if hidden > 0 {
        writeln!(
            out,
            "{}",
            paint.dim(&format!(
                "{}{hidden} more {} with -v",
                if report.findings.len() > hidden { "" } else { "\n" },
                if hidden == 1 { "remark" } else { "remarks" }
            ))
        )?;
    }
    Ok(())
}

fn witnesses(report: &Report, paint: Paint, verbose: bool, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out)?;
    if verbose {
        writeln!(out, "{}", paint.bold("Witnesses"))?;
        let width = report.witnesses.iter().map(|witness| witness.name.len()).max().unwrap_or(0);
        for witness in &report.witnesses {
            let lead = format!("{} {:width$}  ", mark(witness.state), witness.name);
            let indent = width + 4;
            let lines = wrap(&witness.note, paint.width.saturating_sub(indent));
            writeln!(
                out,
                "{}{}",
                if lines.is_empty() { lead.trim_end() } else { &lead },
                lines.first().map_or("", String::as_str)
            )?;
            for line in lines.iter().skip(1) {
                writeln!(out, "{}{line}", " ".repeat(indent))?;
            }
        }
        return Ok(());
    }
    let mut spoke = Vec::new();
    let mut silent = Vec::new();
    for witness in &report.witnesses {
        // Whether to send requests is the user's to say.
        if witness.name == "traffic" && witness.state == WitnessState::Absent {
            continue;
        }
        if witness.state == WitnessState::Spoke {
            spoke.push(witness.name.clone())
        } else {
            silent.push(witness.name.clone())
        }
    }
    let mut text =
        format!("Witnesses: {}", if spoke.is_empty() { "none in full".to_string() } else { spoke.join(", ") });
    if !silent.is_empty() {
        text.push_str(&format!("; not in full: {} (-v says why)", silent.join(", ")));
    }
    for line in wrap(&text, paint.width) {
        writeln!(out, "{}", paint.dim(&line))?;
    }
    Ok(())
}

fn mark(state: WitnessState) -> &'static str {
    match state {
        WitnessState::Spoke => "✓",
        WitnessState::Partial => "◐",
        WitnessState::Absent => "–",
        WitnessState::Failed => "✗",
    }
}
