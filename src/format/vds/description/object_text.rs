//! The syntax of `VDSObject`: nested objects with fields, as text.

use std::collections::HashMap;

/// The deepest nesting of objects, and of values.
const DEEPEST: usize = 64;

/// The fields of an object or of a compound value; of two with the same key the last one counts.
pub(crate) type Items<'a> = HashMap<&'a str, Item<'a>>;

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item<'a> {
    /// The text of a number.
    Number(&'a str),
    Text(String),
    Blob(Vec<u8>),
    One(Items<'a>),
    Many(Vec<Items<'a>>),
}

/// An object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Object<'a> {
    /// The name of its parent's list that contains it.
    pub list: String,
    pub items: Items<'a>,
    pub children: Vec<Object<'a>>,
}

/// Parses an object; text after it is ignored.
pub(crate) fn parse(text: &[u8]) -> Result<Object<'_>, String> {
    let mut reader = Reader { text: text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text), at: 0 };
    if reader.name() != Some("CreateObj") {
        return Err("it does not begin with CreateObj".into());
    }
    reader.object(0).map_err(|fault| format!("{fault} (at byte {} of the text)", reader.at))
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Returns the next byte that is not white space, without reading it.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.get(self.at..)?;
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.text.get(self.at).copied()
    }

    /// Reads the next byte if it is `byte`, and returns whether it was.
    fn accept(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.accept(byte) { Ok(()) } else { Err(format!("a `{}` is missing", char::from(byte))) }
    }

    /// Reads the longest run of bytes for which `belongs` is true.
    fn run(&mut self, belongs: impl Fn(u8) -> bool) -> Option<&'a str> {
        self.peek()?;
        let rest = self.text.get(self.at..)?;
        let run = rest.get(..rest.iter().take_while(|byte| belongs(**byte)).count())?;
        self.at += run.len();
        std::str::from_utf8(run).ok().filter(|run| !run.is_empty())
    }

    fn name(&mut self) -> Option<&'a str> {
        self.run(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    }

    /// Reads a number, also a non-finite one as C libraries write it: `-1.#IND`, `-nan(ind)`.
    fn number(&mut self) -> Result<&'a str, String> {
        let belongs = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.#()".contains(&byte);
        self.run(belongs).ok_or_else(|| "a value is missing".to_owned())
    }

    /// Reads a string in quotes; a backslash quotes the byte behind it.
    fn string(&mut self) -> Result<String, String> {
        self.expect(b'"')?;
        let rest = self.text.get(self.at..).unwrap_or_default();
        let mut found = Vec::new();
        let mut bytes = rest.iter().copied().enumerate();
        while let Some((offset, byte)) = bytes.next() {
            match byte {
                b'"' => {
                    self.at += offset + 1;
                    return Ok(String::from_utf8_lossy(&found).into_owned());
                }
                b'\\' => found.extend(bytes.next().map(|(_, byte)| byte)),
                _ => found.push(byte),
            }
        }
        Err("a text has no end".into())
    }

    /// Reads the arguments of `CreateObj` and the body.
    fn object(&mut self, depth: usize) -> Result<Object<'a>, String> {
        if depth == DEEPEST {
            return Err("objects are nested too deeply".into());
        }
        self.expect(b'(')?;
        self.string()?;
        self.expect(b',')?;
        let list = self.string()?;
        self.expect(b',')?;
        self.run(|byte| byte.is_ascii_digit() || byte == b'-').ok_or_else(|| "an id is missing".to_owned())?;
        self.expect(b')')?;
        self.expect(b'{')?;
        let mut object = Object { list, ..Object::default() };
        while !self.accept(b'}') {
            let Some(key) = self.name() else { return Err("a key or a `}` is missing".into()) };
            match self.peek() {
                Some(b'(') if key == "CreateObj" => object.children.push(self.object(depth + 1)?),
                _ => {
                    object.items.insert(key, self.item(depth)?);
                }
            }
        }
        Ok(object)
    }

    /// Reads the value after a key.
    fn item(&mut self, depth: usize) -> Result<Item<'a>, String> {
        if self.accept(b':') {
            self.expect(b'{')?;
            return self.compound(depth + 1);
        }
        self.expect(b'=')?;
        let item = match self.peek() {
            Some(b'"') => Item::Text(self.string()?),
            _ => match self.number()? {
                "N" if self.accept(b':') => Item::Blob(self.blob()?),
                number => Item::Number(number),
            },
        };
        self.expect(b';')?;
        Ok(item)
    }

    /// Reads a compound value, or a list of them, whose `{` has been read.
    fn compound(&mut self, depth: usize) -> Result<Item<'a>, String> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Ok(Item::One(self.fields(depth)?));
        }
        let count = self.number()?;
        let mut list = Vec::new();
        while self.accept(b',') {
            self.expect(b'{')?;
            list.push(self.fields(depth + 1)?);
        }
        self.expect(b'}')?;
        if count.parse() != Ok(list.len()) {
            return Err(format!("a list of {} is said to have {count}", list.len()));
        }
        Ok(Item::Many(list))
    }

    /// Reads fields up to the closing `}`.
    fn fields(&mut self, depth: usize) -> Result<Items<'a>, String> {
        if depth >= DEEPEST {
            return Err("values are nested too deeply".into());
        }
        let mut items = Items::new();
        while !self.accept(b'}') {
            let Some(key) = self.name() else { return Err("a key or a `}` is missing".into()) };
            items.insert(key, self.item(depth)?);
        }
        Ok(items)
    }

    /// Reads a number of bytes, and the bytes in hexadecimal digits.
    fn blob(&mut self) -> Result<Vec<u8>, String> {
        let count: usize = self.number()?.parse().map_err(|_| "a count of bytes makes no sense".to_owned())?;
        self.expect(b':')?;
        let left = self.text.len() - self.at;
        if count > left / 2 {
            return Err(format!("{count} bytes are said to follow, but there is no room for them"));
        }
        let mut blob = Vec::with_capacity(count);
        for _ in 0..count {
            let [high, low] = [self.digit()?, self.digit()?];
            blob.push(high << 4 | low);
        }
        Ok(blob)
    }

    fn digit(&mut self) -> Result<u8, String> {
        let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
        let digit = digit.ok_or_else(|| "a hexadecimal digit is missing".to_owned())?;
        self.at += 1;
        Ok(digit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(text: &str) -> Result<Object<'_>, String> {
        parse(text.as_bytes())
    }

    fn fault(text: &str) -> String {
        body(text).map_or_else(|fault| fault, |_| "none".into())
    }

    #[test]
    fn every_kind_of_item() {
        let text = r#" CreateObj ( "A", "", 18446744073709551615 ) {
            a=-1.5e3; b = "x\"\\y" ;c=N:3:00fFA0;d:{X=1;Y:{Z="z";}} e:{2,{k=1;},{}}
            g=N:0:; f={};"#;
        assert!(fault(text).starts_with("a value is missing"), "{}", fault(text));
        let text = text.replace("f={};", "h:{}CreateObj(\"B\",\"List\",2){a=1;a=2;CreateObj(\"C\",\"\",3){}}}rest \0");
        let found = body(&text).unwrap();
        let number = |key: &'static str, text: &'static str| Items::from([(key, Item::Number(text))]);
        let d = Items::from([("X", Item::Number("1")), ("Y", Item::One(Items::from([("Z", Item::Text("z".into()))])))]);
        let items = Items::from([
            ("a", Item::Number("-1.5e3")),
            ("b", Item::Text("x\"\\y".into())),
            ("c", Item::Blob(vec![0, 0xff, 0xa0])),
            ("d", Item::One(d)),
            ("e", Item::Many(vec![number("k", "1"), Items::new()])),
            ("g", Item::Blob(vec![])),
            ("h", Item::One(Items::new())),
        ]);
        assert_eq!(found.items, items);
        let [child] = found.children.as_slice() else { panic!("{} children", found.children.len()) };
        assert_eq!((child.list.as_str(), &child.items), ("List", &number("a", "2")));
        assert_eq!(child.children.len(), 1);
    }

    #[test]
    fn texts_need_not_be_utf8() {
        let mut text = b"CreateObj(\"A\",\"\",1){a=\"%\";}".to_vec();
        let percent = text.iter().position(|byte| *byte == b'%').unwrap();
        text[percent] = 0xb5;
        assert_eq!(parse(&text).unwrap().items["a"], Item::Text("\u{fffd}".into()));
    }

    #[test]
    fn faults() {
        let of = |inside: &str| fault(&format!("CreateObj(\"A\",\"\",1){{{inside}}}"));
        for (inside, expected) in [
            ("", "none"),
            ("a=1", "a `;` is missing"),
            ("a;", "a `=` is missing"),
            ("=1;", "a key or a `}` is missing"),
            ("a=\"x;", "a text has no end"),
            ("a=\"x\\", "a text has no end"),
            ("a=N:2:00;", "a hexadecimal digit is missing"),
            ("a=N:99999999999999999999:00;", "a count of bytes makes no sense"),
            ("a=N:4000000000:00;", "4000000000 bytes are said to follow"),
            ("a:{3,{},{}}", "a list of 2 is said to have 3"),
            ("a:{1,{}", "a key or a `}` is missing"),
            ("CreateObj(\"\",\"\"){}", "a `,` is missing"),
        ] {
            assert!(of(inside).starts_with(expected), "{inside}: {}", of(inside));
        }
        assert!(fault("").starts_with("it does not begin"));
        assert!(fault("CreateObj").starts_with("a `(` is missing"));
    }

    #[test]
    fn depth_is_bounded() {
        for (open, close) in [("CreateObj(\"\",\"\",1){", "}"), ("a:{", "}"), ("a:{1,{", "}}")] {
            let nested = |depth: usize| {
                fault(&format!("CreateObj(\"\",\"\",1){{{}{}}}", open.repeat(depth), close.repeat(depth)))
            };
            assert_eq!(nested(20), "none", "{open}");
            assert!(nested(100_000).contains("nested too deeply"), "{open}: {}", nested(100_000));
        }
    }
}
