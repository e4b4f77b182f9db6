//! What the parser of the command line has no way to say: `-sys`.

use std::ffi::OsString;

/// Options whose value may look like an option.
const TAKE_ANYTHING: [&str; 4] = ["-p", "--prompt", "-sys", "--system"];

/// `-sys` as the long option that it is in the original, up to `--`.
pub(crate) fn as_upstream(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let mut is_value = true;
    for argument in &mut arguments {
        if argument == "--" {
            break;
        }
        let starts_value = !is_value && TAKE_ANYTHING.iter().any(|option| argument == option);
        if !is_value {
            if argument == "-sys" {
                *argument = "--system".into();
            } else if let Some(text) = argument.to_str().and_then(|a| a.strip_prefix("-sys=")) {
                *argument = format!("--system={text}").into();
            }
        }
        is_value = starts_value;
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &str) -> Vec<OsString> {
        words.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn sys_is_an_option_and_a_value_is_none() {
        for (given, meant) in [
            ("ds4 -sys X -p Y", "ds4 --system X -p Y"),
            ("ds4 -sys=X", "ds4 --system=X"),
            ("ds4 -p -sys -sys X", "ds4 -p -sys --system X"),
            ("ds4 -sys -sys", "ds4 --system -sys"),
            ("ds4 -- -sys", "ds4 -- -sys"),
            ("-sys -m X", "-sys -m X"),
        ] {
            assert_eq!(as_upstream(line(given)), line(meant), "{given}");
        }
    }
}
