//! The outside program this crate needs: LLVM's disassembler.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::Error;

/// Where the disassembler is.
#[derive(Clone, Debug)]
pub struct Tools {
    /// `llvm-objdump` of LLVM 19, by path or by name.
    pub objdump: PathBuf,
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            objdump: "llvm-objdump-19".into(),
        }
    }
}

impl Tools {
    /// The listing of a code object.
    pub(crate) fn disassemble(&self, object: &[u8]) -> Result<String, Error> {
        let failed = |source| Error::NoDisassembler {
            path: self.objdump.clone(),
            source,
        };
        let mut child = Command::new(&self.objdump)
            .args(["-d", "--mcpu=gfx1151", "--disassemble-zeroes", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let stdin = child.stdin.take();
        // Written beside the reading below, or both sides could wait for each other on a full pipe.
        let output = std::thread::scope(|scope| {
            scope.spawn(move || {
                if let Some(mut stdin) = stdin {
                    // A program that stops reading says why on its error stream.
                    let _ = stdin.write_all(object);
                }
            });
            child.wait_with_output()
        })
        .map_err(failed)?;
        if !output.status.success() {
            return Err(Error::Disassembler {
                path: self.objdump.clone(),
                message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            });
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
