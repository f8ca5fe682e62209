//! Finds the name that a user means among those that there are.

/// Similarity (Jaro) from which on a name is suggested.
const ALIKE: f64 = 0.75;

/// Returns the index of the name that is meant: the same one, or else the only one that differs in case alone, or else
/// the only one that begins like it. The error has the most similar name and all names: `there is no layer x; did you
/// mean y? there are y, z`.
pub(crate) fn choose(kind: &str, names: &[&str], typed: &str) -> Result<usize, String> {
    if let Some(same) = names.iter().position(|name| *name == typed) {
        return Ok(same);
    }
    let lower = typed.to_lowercase();
    let those = |fits: &dyn Fn(&str) -> bool| {
        let fitting = names.iter().enumerate().filter(|(_, name)| fits(&name.to_lowercase()));
        fitting.map(|(index, _)| index).collect::<Vec<_>>()
    };
    for found in [those(&|name| name == lower), those(&|name| !lower.is_empty() && name.starts_with(&lower))] {
        match found.as_slice() {
            [] => {}
            [one] => return Ok(*one),
            several => {
                let several: Vec<&str> = several.iter().filter_map(|index| names.get(*index).copied()).collect();
                return Err(format!("{typed} may be any of {}; give more of the name", several.join(", ")));
            }
        }
    }
    let all = names.join(", ");
    Err(match (similar(names, typed), names.len()) {
        (Some(name), 1) => format!("there is no {kind} {typed}; did you mean {name}?"),
        (Some(name), _) => format!("there is no {kind} {typed}; did you mean {name}? there are {all}"),
        (None, 1) => format!("there is no {kind} {typed}; there is {all}"),
        (None, _) => format!("there is no {kind} {typed}; there are {all}"),
    })
}

/// Returns the name that is most like the one that was typed, if any is.
pub(crate) fn similar<'a>(names: &[&'a str], typed: &str) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let likeness = |name: &str| strsim::jaro(&name.to_lowercase(), &typed);
    let alike = names.iter().map(|name| (likeness(name), *name)).filter(|(likeness, _)| *likeness > ALIKE);
    alike.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_be_short_and_in_any_case() {
        let names = ["Amplitude", "Trace", "SEGYTraceHeader", "amplitude2", "ÄRA"];
        for (typed, index) in [("Amplitude", 0), ("amplitude", 0), ("AMPLITUDE2", 3), ("tr", 1), ("seg", 2), ("ära", 4)]
        {
            assert_eq!(choose("layer", &names, typed), Ok(index), "{typed}");
        }
        assert_eq!(choose("layer", &["a", "A"], "A"), Ok(1));
    }

    #[test]
    fn a_name_that_is_not_there_is_an_error_that_names_what_is() {
        let names = ["Amplitude", "Trace", "amplitude2"];
        for (typed, error) in [
            ("ampl", "ampl may be any of Amplitude, amplitude2; give more of the name"),
            (
                "Amplitdue",
                "there is no layer Amplitdue; did you mean Amplitude? there are Amplitude, Trace, amplitude2",
            ),
            ("xyz", "there is no layer xyz; there are Amplitude, Trace, amplitude2"),
            ("", "there is no layer ; there are Amplitude, Trace, amplitude2"),
        ] {
            assert_eq!(choose("layer", &names, typed).unwrap_err(), error);
        }
        assert_eq!(choose("layer", &["data"], "x").unwrap_err(), "there is no layer x; there is data");
        assert_eq!(choose("layer", &["data"], "dtaa").unwrap_err(), "there is no layer dtaa; did you mean data?");
        assert!(choose("layer", &["a", "A"], "").is_err());
    }
}
