//! Constraint expressions: which variables a client wants, and which part of each. Clients may write anything: what is
//! not understood is refused with a text.

use super::model::Model;

/// A part of a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) start: u64,
    pub(super) step: u64,
    pub(super) count: u64,
    /// Whether it stands for a part of its own (`[2:5]`), and not for the dimension as all variables have it.
    pub(super) is_own: bool,
}

/// A variable that is wanted, by its number, and its part: a slice for each of its dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) variable: usize,
    pub(super) slices: Vec<Slice>,
}

impl Chosen {
    /// Returns the number of elements, which may be more than anything has.
    pub(super) fn elements(&self) -> u128 {
        self.slices.iter().fold(1u128, |product, slice| product.saturating_mul(slice.count.into()))
    }
}

/// What an expression of DAP4 says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dap4 {
    pub(super) chosen: Vec<Chosen>,
    /// The size of each dimension, less where a clause slices it.
    pub(super) dimensions: Vec<u64>,
    pub(super) has_checksums: bool,
}

/// Reads the query of a request of DAP2. Without one, everything is wanted.
pub(super) fn dap2(query: &str, model: &Model) -> Result<Vec<Chosen>, String> {
    let text = decoded(query)?;
    let text = text.strip_suffix('&').unwrap_or(&text);
    let whole = whole_dimensions(model);
    if text.is_empty() {
        return Ok((0..model.variables.len()).map(|variable| all_of(model, variable, &whole)).collect());
    }
    if text.contains('&') {
        return Err("selections are for sequences, and there are none".to_owned());
    }
    let mut chosen = Vec::new();
    for clause in text.split(',') {
        let (name, brackets) = name_and_brackets(clause)?;
        choose(model, &mut chosen, name, &brackets, &whole, |text, size| numbers(text, size, false))?;
    }
    Ok(chosen)
}

/// Reads the query of a request of DAP4.
pub(super) fn dap4(query: &str, model: &Model) -> Result<Dap4, String> {
    let (mut expression, mut checksum) = (None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let slot = match &*decoded(key)? {
            "dap4.ce" => &mut expression,
            "dap4.checksum" => &mut checksum,
            // programs and proxies add their own
            _ => continue,
        };
        if slot.replace(decoded(value)?).is_some() {
            return Err("a key is there twice".to_owned());
        }
    }
    let has_checksums = match checksum.as_deref() {
        None => true,
        Some(text) if text.eq_ignore_ascii_case("true") => true,
        Some(text) if text.eq_ignore_ascii_case("false") => false,
        Some(_) => return Err("dap4.checksum is true or false".to_owned()),
    };
    let expression = expression.unwrap_or_default();
    let mut dimensions = whole_dimensions(model);
    let (mut chosen, mut sliced) = (Vec::new(), vec![false; dimensions.len()]);
    let clauses = expression.split(';').map(str::trim).filter(|clause| !matches!(*clause, "" | "/"));
    for clause in clauses {
        if let Some((name, slice)) = clause.split_once('=') {
            let name = name.strip_prefix('/').unwrap_or(name);
            let at = model.dimensions.iter().position(|(known, _)| known == name);
            let at = at.ok_or_else(|| format!("no dimension {}", shown(name)))?;
            let (before, brackets) = name_and_brackets(slice)?;
            let ([text], "") = (&brackets[..], before) else {
                return Err("a dimension is sliced by one pair of brackets".to_owned());
            };
            if std::mem::replace(&mut sliced[at], true) || !chosen.is_empty() {
                return Err("each dimension is sliced once, before all variables".to_owned());
            }
            dimensions[at] = Slice { is_own: false, ..numbers(text, model.dimensions[at].1, true)? };
        } else {
            let (name, brackets) = name_and_brackets(clause)?;
            let name = name.strip_prefix('/').unwrap_or(name);
            choose(model, &mut chosen, name, &brackets, &dimensions, |text, size| numbers(text, size, true))?;
        }
    }
    if chosen.len() > 1 && checksum.is_none() {
        return Err("with several variables say dap4.checksum=true: some clients read them wrong otherwise".to_owned());
    }
    if chosen.is_empty() {
        chosen = (0..model.variables.len()).map(|variable| all_of(model, variable, &dimensions)).collect();
    }
    Ok(Dap4 { chosen, dimensions: dimensions.iter().map(|slice| slice.count).collect(), has_checksums })
}

fn decoded(text: &str) -> Result<String, String> {
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
    decoded.map(std::borrow::Cow::into_owned).map_err(|_| "the expression is not UTF-8".to_owned())
}

fn whole_dimensions(model: &Model) -> Vec<Slice> {
    model.dimensions.iter().map(|(_, count)| Slice { start: 0, step: 1, count: *count, is_own: false }).collect()
}

fn all_of(model: &Model, variable: usize, dimensions: &[Slice]) -> Chosen {
    let of = |dimension: &usize| dimensions[*dimension];
    Chosen { variable, slices: model.variables[variable].dimensions.iter().map(of).collect() }
}

/// Adds a variable with the slices in its brackets; without brackets it has those of its dimensions.
fn choose(
    model: &Model,
    chosen: &mut Vec<Chosen>,
    name: &str,
    brackets: &[&str],
    dimensions: &[Slice],
    read: impl Fn(&str, u64) -> Result<Slice, String>,
) -> Result<(), String> {
    let variable = model.variables.iter().position(|variable| variable.name == name);
    let variable = variable.ok_or_else(|| format!("no variable {}", shown(name)))?;
    if chosen.iter().any(|chosen| chosen.variable == variable) {
        return Err(format!("{name} is wanted twice"));
    }
    let mut all = all_of(model, variable, dimensions);
    if !brackets.is_empty() {
        if brackets.len() != all.slices.len() {
            return Err(format!("{name} has {} dimensions, and {} brackets", all.slices.len(), brackets.len()));
        }
        let sizes = model.variables[variable].dimensions.iter().map(|dimension| model.dimensions[*dimension].1);
        for ((slice, text), size) in all.slices.iter_mut().zip(brackets).zip(sizes) {
            // `[]` of DAP4 is the dimension as it is
            if !text.is_empty() {
                *slice = read(text, size)?;
            } else if read("", size).is_err() {
                return Err("brackets are empty".to_owned());
            }
        }
    }
    chosen.push(all);
    Ok(())
}

/// Splits `name[1:2][3]` into the name and what is in the brackets.
fn name_and_brackets(clause: &str) -> Result<(&str, Vec<&str>), String> {
    let (name, mut rest) = clause.split_at(clause.find('[').unwrap_or(clause.len()));
    let mut brackets = Vec::new();
    while !rest.is_empty() {
        let inner = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let (inner, after) = inner.ok_or_else(|| format!("brackets are not closed in {}", shown(clause)))?;
        brackets.push(inner);
        rest = after;
    }
    Ok((name, brackets))
}

/// Reads `i`, `a:b` or `a:s:b` of a dimension, ends included; in DAP4 also `a:` and nothing, for all that follows.
fn numbers(text: &str, size: u64, is_dap4: bool) -> Result<Slice, String> {
    let bad = || format!("[{}] is no part of a dimension of {size}", shown(text));
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // more digits than fit are beyond any dimension
        if is_number { text.parse::<u64>().map_err(|_| bad()) } else { Err(bad()) }
    };
    let last = |text: &str| match text {
        "" if is_dap4 => size.checked_sub(1).ok_or_else(bad),
        text => number(text),
    };
    let parts: Vec<&str> = text.split(':').take(4).collect();
    let (start, step, end) = match parts[..] {
        [""] if is_dap4 => (0, 1, last("")?),
        [index] => (number(index)?, 1, number(index)?),
        [start, end] => (number(start)?, 1, last(end)?),
        [start, step, end] => (number(start)?, number(step)?, last(end)?),
        _ => return Err(bad()),
    };
    if step == 0 || start > end || end >= size {
        return Err(bad());
    }
    Ok(Slice { start, step, count: (end - start) / step + 1, is_own: true })
}

/// Returns what a client has written as part of an error: not all of it.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(60).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::model::tests::model;
    use super::*;

    fn slices(chosen: &Chosen) -> Vec<(u64, u64, u64)> {
        chosen.slices.iter().map(|slice| (slice.start, slice.step, slice.count)).collect()
    }

    #[test]
    fn clauses_choose_variables_and_parts() {
        let model = model();
        let read = |text: &str| dap2(text, &model);
        let all = read("").unwrap();
        assert_eq!(all.len(), 3);
        assert_eq!((slices(&all[0]), slices(&all[2])), (vec![(0, 1, 5)], vec![(0, 1, 5), (0, 1, 3), (0, 1, 7)]));
        assert_eq!(read("&"), read(""));
        for text in ["data[2][0:1:2][1:2:5]", "data%5b2%5d%5B0%3A1%3A2%5D%5b1:2:5%5d", "data[2][0:2][1:2:6]&"] {
            let got = read(text).unwrap();
            assert_eq!((got.len(), slices(&got[0]).len()), (1, 3), "{text}");
            assert_eq!(slices(&got[0])[..2], [(2, 1, 1), (0, 1, 3)], "{text}");
        }
        assert_eq!(slices(&read("data[0][0][1:2:6]").unwrap()[0])[2], (1, 2, 3));
        let order: Vec<usize> = read("data,z[4]").unwrap().iter().map(|chosen| chosen.variable).collect();
        assert_eq!(order, [2, 0]);
    }

    #[test]
    fn whatever_is_not_understood_is_refused() {
        let model = model();
        for text in [
            "nothing",
            "data[0]",
            "data[0][0][0][0]",
            "data[0][0][7]",
            "data[0][0][-1]",
            "data[0][0][3:2]",
            "data[0][0][0:0:3]",
            "data[0][0][0:1:2:3]",
            "data[0][0][99999999999999999999]",
            "data[0][0][0:18446744073709551615]",
            "data[][][]",
            "data[0][0][0",
            "data[[0]][0][0]",
            "z,z",
            "data&z>3",
            "data.data",
            "z[0:]",
            "z[1,2]",
            ",",
            "z,",
            "%ff",
            "z[+1]",
            "z[ 1]",
        ] {
            assert!(dap2(text, &model).is_err(), "{text}");
        }
        let nested = "[".repeat(100_000);
        assert!(dap2(&nested, &model).unwrap_err().len() < 200);
    }

    #[test]
    fn dap4_also_slices_dimensions() {
        let model = model();
        let read = |ce: &str| dap4(&format!("dap4.ce={ce}&dap4.checksum=true"), &model);
        for all in ["", "/", ";", "%2F"] {
            assert_eq!(read(all).unwrap().chosen.len(), 3, "{all}");
        }
        assert_eq!(dap4("", &model).unwrap().chosen.len(), 3);
        assert!(dap4("", &model).unwrap().has_checksums);
        assert!(!dap4("dap4.checksum=false", &model).unwrap().has_checksums);
        let got = read("/z=[1:2:4];/x=[2:];/data;/z[0]").unwrap();
        assert_eq!(got.dimensions, [2, 3, 5]);
        assert_eq!(slices(&got.chosen[0]), [(1, 2, 2), (0, 1, 3), (2, 1, 5)]);
        assert!(!got.chosen[0].slices[0].is_own && got.chosen[1].slices[0].is_own);
        assert_eq!(slices(&read("data[][1:][3]").unwrap().chosen[0]), [(0, 1, 5), (1, 1, 2), (3, 1, 1)]);
        assert!(!read("/data[][][3]").unwrap().chosen[0].slices[0].is_own);
        for bad in [
            "/q",
            "/q=[1]",
            "/z=[1];/z=[2]",
            "/z=1",
            "/z=[1][2]",
            "/data;/z=[1]",
            "/z|z>3",
            "/data[0,1][0][0]",
            "/z;/z",
            "/z=[0:9]",
            "/z=[]x",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
        assert!(dap4("dap4.ce=/z;/data", &model).is_err(), "clients read the second variable wrong");
        assert!(dap4("dap4.ce=/z;/data&dap4.checksum=false", &model).is_ok());
        for bad in ["dap4.checksum=maybe", "dap4.ce=/z&dap4.ce=/z"] {
            assert!(dap4(bad, &model).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn what_is_chosen_lies_in_the_variable(text in "(/?(z|y|data|q)(=?\\[[0-9:]{0,6}\\]){0,4}[;,&]?){0,3}") {
            let model = model();
            let checked = |chosen: &[Chosen]| chosen.iter().all(|chosen| {
                let dimensions = &model.variables[chosen.variable].dimensions;
                chosen.slices.len() == dimensions.len()
                    && chosen.slices.iter().zip(dimensions).all(|(slice, dimension)| {
                        slice.count > 0 && slice.start + slice.step * (slice.count - 1) < model.dimensions[*dimension].1
                    })
            });
            prop_assert!(dap2(&text, &model).map_or(true, |chosen| checked(&chosen)));
            let of_dap4 = dap4(&format!("dap4.ce={text}&dap4.checksum=true"), &model);
            prop_assert!(of_dap4.map_or(true, |found| checked(&found.chosen)));
        }
    }
}
