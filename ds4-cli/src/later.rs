//! Options that people know from other builds and that this one cannot honour: each is refused in one line that says why.

use std::ffi::{OsStr, OsString};

/// Names of options, and what this build does instead.
const LATER: [(&[&str], &str); 4] = [
    (
        &["rocm", "hip", "metal", "cuda", "gpu-vram", "gpu-devices"],
        "this build computes on the processor alone",
    ),
    (
        &[
            "ssd-streaming",
            "ssd-streaming-cold",
            "ssd-streaming-cache-experts",
            "ssd-streaming-full-layers",
            "ssd-streaming-preload-experts",
        ],
        "this build maps the whole model into memory",
    ),
    (
        &[
            "mtp",
            "mtp-model",
            "mtp-draft",
            "mtp-margin",
            "mtp-exact-sampling",
            "dspark",
            "dspark-confidence",
            "dspark-strict",
            "glm-mtp",
            "glm-mtp-timing",
        ],
        "this build decodes without drafts",
    ),
    (
        &[
            "role",
            "coordinator",
            "tensor-parallel",
            "cuda-tensor-parallel",
        ],
        "this build runs on one machine",
    ),
];

/// Why the command line asks for something that this build cannot do, if it does.
pub(crate) fn refuse(arguments: &[OsString]) -> Option<String> {
    arguments
        .iter()
        .skip(1)
        .take_while(|a| *a != OsStr::new("--"))
        .find_map(|argument| {
            let name = argument.to_str()?.strip_prefix("--")?;
            let name = name.split('=').next()?;
            let (_, why) = LATER.iter().find(|(names, _)| names.contains(&name))?;
            Some(format!("--{name}: {why}"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(arguments: &[&str]) -> Option<String> {
        let all: Vec<OsString> = ["ds4"]
            .iter()
            .chain(arguments)
            .map(OsString::from)
            .collect();
        refuse(&all)
    }

    #[test]
    fn known_options_are_refused_by_name() {
        assert_eq!(
            refused(&["-m", "x", "--ssd-streaming-cache-experts=9"]).as_deref(),
            Some("--ssd-streaming-cache-experts: this build maps the whole model into memory")
        );
        assert!(refused(&["--rocm"]).is_some());
        assert_eq!(refused(&["--port", "1", "--no-such"]), None);
        assert_eq!(refused(&["--", "--rocm"]), None);
    }
}
