//! DAP2: declarations (DDS), attributes (DAS), and samples behind the declarations (DODS).

use std::fmt::Write;

use super::answer::{Answer, Type, Wire};
use super::constraint::Chosen;
use super::model::{Model, Variable};
use crate::view::CfValue;

/// Returns the declarations of what is chosen.
pub(super) fn dds(model: &Model, chosen: &[Chosen]) -> String {
    let mut text = "Dataset {\n".to_owned();
    for Chosen { variable, slices } in chosen {
        let variable = &model.variables[*variable];
        let _ = write!(text, "    {} {}", Type::of(model.stored(variable)).name(), variable.name);
        for (dimension, slice) in variable.dimensions.iter().zip(slices) {
            let _ = write!(text, "[{} = {}]", model.dimensions[*dimension].0, slice.count);
        }
        text += ";\n";
    }
    let _ = writeln!(text, "}} {};", model.name);
    text
}

/// Returns all attributes.
pub(super) fn das(model: &Model) -> String {
    let mut text = "Attributes {\n".to_owned();
    for variable in &model.variables {
        attributes(&mut text, &variable.name, &variable.attributes, Type::of(model.stored(variable)));
    }
    attributes(&mut text, "NC_GLOBAL", &model.global, Type::Float64);
    text + "}\n"
}

fn attributes(text: &mut String, name: &str, attributes: &[(&'static str, CfValue)], kind: Type) {
    let _ = writeln!(text, "    {name} {{");
    for (key, value) in attributes {
        let _ = match value {
            CfValue::Text(value) => writeln!(text, "        String {key} {};", quoted(value)),
            CfValue::Number(value) => writeln!(text, "        Float64 {key} {value:?};"),
            CfValue::Sample(value) => match kind {
                Type::Float32 => writeln!(text, "        Float32 {key} {:?};", *value as f32),
                Type::Float64 => writeln!(text, "        Float64 {key} {value:?};"),
                _ => writeln!(text, "        {} {key} {value};", kind.name()),
            },
        };
    }
    *text += "    }\n";
}

fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for c in text.chars().filter(|c| *c != '\0') {
        if matches!(c, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted + "\""
}

/// Returns the bytes of the values that are chosen, as they are sent.
pub(super) fn bytes(model: &Model, chosen: &[Chosen]) -> u128 {
    let of = |chosen: &Chosen| {
        let kind = Type::of(model.stored(&model.variables[chosen.variable]));
        chosen.elements().saturating_mul(kind.size().into())
    };
    chosen.iter().map(of).fold(0, u128::saturating_add)
}

/// Fills an answer: the declarations, then of each variable the number of its values, twice, and the values.
pub(super) fn dods(model: &Model, chosen: &[Chosen], answer: &mut Answer) {
    let mut head = (dds(model, chosen) + "Data:\n").into_bytes();
    for chosen in chosen {
        let variable: &Variable = &model.variables[chosen.variable];
        // the server has refused more than 31 bits
        let count = u32::try_from(chosen.elements()).unwrap_or(u32::MAX).to_be_bytes();
        head.extend([count, count].concat());
        answer.add_bytes(std::mem::take(&mut head));
        answer.add_values(variable.values, chosen, Wire::Dap2(Type::of(model.stored(variable))));
    }
}

/// Returns an error as clients of DAP2 read it.
pub(super) fn error(code: u16, message: &str) -> String {
    format!("Error {{\n    code = {code};\n    message = {};\n}};\n", quoted(message))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::constraint;
    use super::super::model::tests::{array, model};
    use super::*;
    use crate::view::Content;
    use crate::view::tests::{read, zeros};
    use crate::volume::Dtype;

    #[test]
    fn declarations_have_the_sizes_of_the_selection() {
        let model = model();
        let of = |text: &str| dds(&model, &constraint::dap2(text, &model).unwrap());
        assert_eq!(
            of(""),
            "Dataset {\n    Float64 z[z = 5];\n    Float64 x[x = 7];\n    Float32 data[z = 5][y = 3][x = 7];\n} north_zgy;\n"
        );
        assert_eq!(of("data[1][0:2:2][0:3]"), "Dataset {\n    Float32 data[z = 1][y = 2][x = 4];\n} north_zgy;\n");
    }

    #[test]
    fn attributes_are_numbers_that_read_back_and_quoted_texts() {
        let got = das(&model());
        let expected = "Attributes {\n    z {\n        String long_name \"z\";\n        String units \"um\";\n        \
            String axis \"Z\";\n    }\n    x {\n        String long_name \"x\";\n        String units \"um\";\n        \
            String axis \"X\";\n    }\n    data {\n        String long_name \"a \\\"b\\\"\";\n        \
            Float32 _FillValue -999.25;\n    }\n    NC_GLOBAL {\n        String Conventions \"CF-1.8\";\n        \
            String title \"north.zgy, layer a \\\"b\\\", LOD 0\";\n    }\n}\n";
        assert_eq!(got, expected);
        assert_eq!(error(404, "no \"x\""), "Error {\n    code = 404;\n    message = \"no \\\"x\\\"\";\n};\n");
    }

    #[test]
    fn samples_follow_their_number_in_the_order_of_the_network() {
        let model = Model::of(array(Dtype::Int8, &[("x", 3)]), "t");
        let chosen = constraint::dap2("x[0:1],data[0:2]", &model).unwrap();
        let level = zeros(&[3], Dtype::Int8);
        let mut answer = Answer::new(&level);
        dods(&model, &chosen, &mut answer);
        assert_eq!(bytes(&model, &chosen), 16 + 12);
        let content = Content::Computed(Arc::new(answer));
        let samples = [0x80u8, 62, 0x8f];
        let all = read(&content, 0..content.len(), &mut |_, at| vec![samples[at[0] as usize]]).unwrap();
        let head = "Dataset {\n    Float64 x[x = 2];\n    Int16 data[x = 3];\n} t;\nData:\n";
        assert!(all.starts_with(head.as_bytes()));
        // positions begin at 10, 2 apart
        let expected = [
            &[0, 0, 0, 2, 0, 0, 0, 2][..],
            &10f64.to_be_bytes(),
            &12f64.to_be_bytes(),
            &[0, 0, 0, 3, 0, 0, 0, 3, 0xff, 0xff, 0xff, 0x80, 0, 0, 0, 62, 0xff, 0xff, 0xff, 0x8f],
        ];
        assert_eq!(all[head.len()..], expected.concat());
        for begin in 0..content.len() {
            for end in begin + 1..=content.len() {
                let part = read(&content, begin..end, &mut |_, at| vec![samples[at[0] as usize]]).unwrap();
                assert!(part == all[begin as usize..end as usize], "{begin}..{end}");
            }
        }
    }
}
