//! DSML, the markup in which DeepSeek-V4 declares and makes tool calls.
//!
//! ```text
//! <｜DSML｜tool_calls>
//! <｜DSML｜invoke name="NAME">
//! <｜DSML｜parameter name="KEY" string="true|false">VALUE</｜DSML｜parameter>
//! </｜DSML｜invoke>
//! </｜DSML｜tool_calls>
//! ```
//! `string="true"`: VALUE is the string itself, byte for byte; `string="false"`: VALUE is JSON.
//! `｜DSML｜` is one token.

use super::dialect::Rules;
use super::json::{self, Value};
use super::{Error, Tool, ToolCall, marker};
use crate::tokenizer::Segments;

const HEAD: &str = include_str!("text/tools_head.txt");
const TAIL: &str = include_str!("text/tools_tail.txt");
const HEAD_DS4: &str = include_str!("text/tools_head_ds4.txt");
const TAIL_DS4: &str = include_str!("text/tools_tail_ds4.txt");

/// Markers in the wording of the tools block.
const IN_WORDING: [&str; 3] = [marker::DSML, marker::THINK, marker::THINK_END];

/// Append the block that declares `tools`: one schema a line.
pub(super) fn declare(out: &mut Segments, tools: &[Tool], rules: Rules) -> Result<(), Error> {
    let (head, tail) = if rules.own_wording {
        (HEAD_DS4, TAIL_DS4)
    } else {
        (HEAD, TAIL)
    };
    out.template(head, &IN_WORDING);
    for (i, tool) in tools.iter().enumerate() {
        out.text(if i > 0 { "\n" } else { "" });
        if rules.raw_json {
            out.text(tool.json());
        } else {
            out.text(&json::python(
                &format!("the tool `{}`", tool.name()),
                tool.json(),
            )?);
        }
    }
    out.template(tail, &IN_WORDING);
    Ok(())
}

/// Append the block that makes `calls`, without the blank line in front.
pub(super) fn call(out: &mut Segments, calls: &[ToolCall], rules: Rules) -> Result<(), Error> {
    tag(out, "<", "tool_calls>\n");
    for call in calls {
        tag(out, "<", "invoke name=\"");
        out.text(&call.name);
        out.text("\">\n");
        let members = json::members(
            &format!("the arguments of the call to `{}`", call.name),
            &call.arguments,
        )?;
        if members.is_empty() && rules.blank_arguments {
            out.text("\n");
        }
        for member in members {
            tag(out, "<", "parameter name=\"");
            out.text(&member.key);
            let what = format!(
                "the argument `{}` of the call to `{}`",
                member.key, call.name
            );
            match member.value {
                Value::Text(text) if rules.escape => {
                    out.text("\" string=\"true\">");
                    out.text(&text.replace(&closing("parameter"), &escaped("parameter")));
                }
                Value::Text(text) => {
                    out.text("\" string=\"true\">");
                    out.text(&text);
                }
                Value::Json(json) => {
                    out.text("\" string=\"false\">");
                    if rules.raw_json {
                        let compact = json::compact(&what, &json)?;
                        out.text(&compact.replace(
                            &closing("parameter"),
                            &format!("\\u003c{}", &closing("parameter")[1..]),
                        ));
                    } else {
                        out.text(&json::python(&what, &json)?);
                    }
                }
            }
            tag(out, "</", "parameter>\n");
        }
        tag(out, "</", "invoke>\n");
    }
    tag(out, "</", "tool_calls>");
    Ok(())
}

fn tag(out: &mut Segments, open: &str, rest: &str) {
    out.text(open);
    out.marker(marker::DSML);
    out.text(rest);
}

fn closing(name: &str) -> String {
    format!("</{}{name}>", marker::DSML)
}

fn escaped(name: &str) -> String {
    format!("&lt;/{}{name}>", marker::DSML)
}
