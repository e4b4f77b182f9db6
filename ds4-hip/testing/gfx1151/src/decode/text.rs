//! The disassembler's text, cut into instructions and words.
//!
//! ```text
//! 0000000000002700 <quant_x>:
//!     v_mov_b32_dpp v5, v0 row_xmask:8 row_mask:0xf bank_mask:0xf bound_ctrl:1// 0000000027C4: 7E0A02FA FF096800
//! ```

/// One line of a listing: an instruction with its address.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    pub(crate) function: &'a str,
    pub(crate) address: u64,
    pub(crate) text: &'a str,
    /// The first word of the encoding.
    pub(crate) encoding: u32,
}

/// The instructions of a listing.
pub(crate) fn lines(listing: &str) -> impl Iterator<Item = Line<'_>> {
    let mut function = "";
    listing.lines().filter_map(move |line| {
        if let Some((_, name)) = line
            .strip_suffix(">:")
            .and_then(|head| head.split_once(" <"))
        {
            function = name;
            return None;
        }
        let (text, comment) = line.strip_prefix('\t')?.rsplit_once("//")?;
        let (address, words) = comment.trim_start().split_once(':')?;
        let first = words.split_whitespace().next()?;
        Some(Line {
            function,
            address: u64::from_str_radix(address, 16).ok()?,
            text: text.trim(),
            encoding: u32::from_str_radix(first, 16).ok()?,
        })
    })
}

/// An instruction cut into words.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Words<'a> {
    /// Without the suffix of its encoding.
    pub(crate) name: &'a str,
    pub(crate) operands: Vec<&'a str>,
    /// `key:value`, and bare words such as `clamp` with an empty value.
    pub(crate) modifiers: Vec<(&'a str, &'a str)>,
}

/// Words that are modifiers although they have no value.
const FLAGS: [&str; 7] = [
    "clamp",
    "glc",
    "slc",
    "dlc",
    "row_mirror",
    "row_half_mirror",
    "gds",
];

impl<'a> Words<'a> {
    /// Cut `text`, which holds one instruction.
    pub(crate) fn new(text: &'a str) -> Self {
        let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
        let mut words = Self {
            name: bare_name(name),
            ..Self::default()
        };
        for word in split(rest) {
            let key = word.split(':').next().unwrap_or_default();
            if key.len() < word.len() && !key.contains(['[', '(']) {
                words.modifiers.push((key, &word[key.len() + 1..]));
            } else if FLAGS.contains(&word) {
                words.modifiers.push((word, ""));
            } else {
                words.operands.push(word);
            }
        }
        words
    }

    /// The value of a modifier.
    pub(crate) fn get(&self, key: &str) -> Option<&'a str> {
        self.modifiers
            .iter()
            .find(|(k, _)| *k == key)
            .map(|(_, v)| *v)
    }

    /// Whether a modifier is there.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// A number, decimal or hexadecimal, possibly negative.
    pub(crate) fn number(&self, key: &str) -> Option<i64> {
        number(self.get(key)?)
    }

    /// `[1,0,1]` as bits, the first the lowest; `missing` when it is not there.
    pub(crate) fn bits(&self, key: &str, missing: u8) -> u8 {
        let Some(list) = self.get(key) else {
            return missing;
        };
        list.trim_matches(['[', ']'])
            .split(',')
            .enumerate()
            .fold(0, |bits, (k, b)| bits | u8::from(b == "1") << k)
    }

    /// `[3,2,1,0]` as numbers.
    pub(crate) fn list<const N: usize>(&self, key: &str) -> Option<[u8; N]> {
        let list = self.get(key)?.trim_matches(['[', ']']);
        let numbers: Option<Vec<u8>> = list.split(',').map(|n| n.parse().ok()).collect();
        numbers?.try_into().ok()
    }
}

fn bare_name(name: &str) -> &str {
    ["_e64_dpp", "_dpp", "_e32", "_e64"]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .unwrap_or(name)
}

/// A number as the disassembler writes it.
pub(crate) fn number(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { -value } else { value })
}

/// Split at commas and spaces outside brackets.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    text.split(move |c| {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            _ => {}
        }
        depth == 0 && (c == ' ' || c == ',')
    })
    .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_becomes_lines_with_functions() {
        let listing = "\nx:\tfile format elf64-amdgpu\n\n0000000000001000 <k>:\n\ts_endpgm    // 000000001000: BFB00000\n\tv_mov_b32_dpp v5, v0 dpp8:[7,6,5,4,3,2,1,0]// 000000001004: 00\n";
        let found: Vec<_> = lines(listing).collect();
        assert_eq!(found.len(), 2);
        assert_eq!((found[1].function, found[1].address), ("k", 0x1004));
        let words = Words::new(found[1].text);
        assert_eq!(words.name, "v_mov_b32");
        assert_eq!(words.operands, ["v5", "v0"]);
        assert_eq!(words.list::<8>("dpp8"), Some([7, 6, 5, 4, 3, 2, 1, 0]));
    }

    #[test]
    fn words_are_operands_or_modifiers() {
        let words = Words::new("global_load_b32 v1, v[2:3], off offset:-16 glc dlc");
        assert_eq!(words.operands, ["v1", "v[2:3]", "off"]);
        assert_eq!(words.number("offset"), Some(-16));
        assert!(words.has("glc") && !words.has("slc"));
        let words = Words::new("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 15");
        assert_eq!(words.operands, ["hwreg(HW_REG_MODE, 4, 4)", "15"]);
        assert_eq!(Words::new("v_x v0 op_sel:[1,0,1]").bits("op_sel", 0), 5);
    }
}
