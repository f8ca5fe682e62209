//! `volfs doctor`.

use serde_json::{Value, json};

use super::error::CliError;
use super::facts::{Facts, Places};
use super::findings::{self, Finding, Level};
use super::page::{Page, Tone};
use super::read_args::DoctorArgs;
use super::{mountpoint, output};
use crate::view::json_text;

/// Looks at the machine and prints what was found.
///
/// # Errors
/// [`CliError::Doctor`] if something prevents mounting.
pub fn run(args: &DoctorArgs) -> Result<(), CliError> {
    let facts = Facts::collect(&Places::usual(), &mountpoint::mounts()?);
    let findings = findings::of(&facts);
    if args.json {
        output::whole(&json_text::format(&described(&findings)))?;
    } else {
        let mut page = Page::new(output::coloured());
        findings.iter().for_each(|finding| write(&mut page, finding));
        output::whole(page.text())?;
    }
    if can_mount(&findings) { Ok(()) } else { Err(CliError::Doctor) }
}

fn can_mount(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.level != Level::Problem)
}

fn write(page: &mut Page, finding: &Finding) {
    let tone = match finding.level {
        Level::Ok => Tone::Good,
        Level::Note => Tone::Careful,
        Level::Problem => Tone::Bad,
    };
    page.item(tone, finding.level.name(), &finding.text, finding.remedy.as_deref());
}

fn described(findings: &[Finding]) -> Value {
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
