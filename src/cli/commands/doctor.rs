//! `volfs doctor`: probes the machine, checks what was found, and prints the findings.

mod checks;
#[cfg(test)]
mod checks_tests;
mod crawlers;
mod finding;
mod probes;

use serde_json::{Value, json};

use self::finding::{Finding, Level};
use self::probes::{ProbePaths, Probes};
use crate::cli::args::DoctorArgs;
use crate::cli::error::CliError;
use crate::cli::mounts::mountpoint;
use crate::cli::output;
use crate::cli::text::layout::{TextLayout, Tone};
use crate::view::json_text;

/// Prints what helps or prevents mounting on this machine.
pub(crate) fn run(args: &DoctorArgs) -> Result<(), CliError> {
    let probes = Probes::collect(&ProbePaths::system(), &mountpoint::mounts()?);
    let findings = checks::run(&probes);
    if args.json {
        output::whole(&json_text(&findings_json(&findings)))?;
    } else {
        let mut layout = TextLayout::new(output::coloured());
        findings.iter().for_each(|finding| write(&mut layout, finding));
        output::whole(layout.text())?;
    }
    if can_mount(&findings) { Ok(()) } else { Err(CliError::Doctor) }
}

fn can_mount(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.level != Level::Problem)
}

fn write(layout: &mut TextLayout, finding: &Finding) {
    let tone = match finding.level {
        Level::Ok => Tone::Good,
        Level::Note => Tone::Careful,
        Level::Problem => Tone::Bad,
    };
    layout.item(tone, finding.level.name(), &finding.text, finding.remedy.as_deref());
}

fn findings_json(findings: &[Finding]) -> Value {
    let each = |finding: &Finding| {
        json!({
            "level": finding.level.name(),
            "subject": finding.subject,
            "text": finding.text,
            "remedy": finding.remedy,
        })
    };
    json!({"can_mount": can_mount(findings), "findings": findings.iter().map(each).collect::<Vec<_>>()})
}
