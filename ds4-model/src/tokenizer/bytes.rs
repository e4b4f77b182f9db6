//! The byte alphabet: every byte written as one printable character, so that byte-pair merges can be kept as text.
//!
//! ```text
//! 33..=126, 161..=172, 174..=255   the character with that code point
//! the other 68, in rising order    U+0100, U+0101, … U+0143
//! ```
//! Source: openai/gpt-2:src/encoder.py (`bytes_to_unicode`); shared by every byte-level vocabulary.

const fn is_printable(byte: u8) -> bool {
    matches!(byte, 33..=126 | 161..=172 | 174..=255)
}

/// Byte → character of the alphabet.
const TO_CHAR: [char; 256] = {
    let mut table = ['\0'; 256];
    let (mut byte, mut moved) = (0usize, 0u32);
    while byte < 256 {
        table[byte] = if is_printable(byte as u8) {
            byte as u8 as char
        } else {
            moved += 1;
            match char::from_u32(0xFF + moved) {
                Some(c) => c,
                None => unreachable!(),
            }
        };
        byte += 1;
    }
    table
};

/// The character that stands for `byte`.
pub(super) fn to_char(byte: u8) -> char {
    TO_CHAR[usize::from(byte)]
}

/// The byte that `symbol` stands for; `None` outside the alphabet.
pub(super) fn to_byte(symbol: char) -> Option<u8> {
    let code = u32::from(symbol);
    match u8::try_from(code) {
        Ok(byte) => is_printable(byte).then_some(byte),
        Err(_) => {
            let moved = code.checked_sub(0x100)?;
            MOVED.get(usize::try_from(moved).ok()?).copied()
        }
    }
}

/// The 68 bytes that are not their own character, in rising order.
const MOVED: [u8; 68] = {
    let mut table = [0u8; 68];
    let (mut byte, mut at) = (0usize, 0usize);
    while byte < 256 {
        if !is_printable(byte as u8) {
            table[at] = byte as u8;
            at += 1;
        }
        byte += 1;
    }
    table
};

/// The bytes of a vocabulary entry: alphabet characters become their bytes; an entry with any other character is
/// taken as plain text.
pub(super) fn entry_bytes(entry: &str) -> Vec<u8> {
    entry
        .chars()
        .map(to_byte)
        .collect::<Option<Vec<u8>>>()
        .unwrap_or_else(|| entry.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_own_character_and_comes_back() {
        let all: std::collections::BTreeSet<char> = (0..=255).map(to_char).collect();
        assert_eq!(all.len(), 256);
        assert!((0..=255).all(|b| to_byte(to_char(b)) == Some(b)));
        assert_eq!(
            (to_char(b' '), to_char(b'\n'), to_char(0xAD)),
            ('Ġ', 'Ċ', 'Ń')
        );
        assert_eq!(to_byte('｜'), None);
        assert_eq!(to_byte('\u{144}'), None);
        assert_eq!(entry_bytes("Ġthe"), b" the");
        assert_eq!(entry_bytes("<｜User｜>"), "<｜User｜>".as_bytes());
    }
}
