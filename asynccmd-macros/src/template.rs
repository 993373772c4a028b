//! The text of `biz_key = "…"`: literal text and `{field}`.

use syn::Ident;

/// A part of a business key.
#[derive(Debug, PartialEq)]
pub(crate) enum Part {
    /// Text as it stands, braces no longer doubled.
    Text(String),
    /// The value of a payload field; the name without `r#`.
    Field(String),
}

/// Splits a template into its parts.
pub(crate) fn parse(template: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        text.push_str(&rest[..at]);
        let (brace, after) = rest[at..].split_at(1);
        if let Some(after) = after.strip_prefix(brace) {
            text.push_str(brace);
            rest = after;
            continue;
        }
        if brace == "}" {
            return Err(format!(
                "`biz_key = {template:?}` closes a brace that it does not open; write `}}}}` for a brace"
            ));
        }
        let Some((name, after)) = after.split_once('}') else {
            return Err(format!(
                "`biz_key = {template:?}` opens a brace that it does not close; write `{{{{` for a brace"
            ));
        };
        if !text.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut text)));
        }
        parts.push(Part::Field(field(name)?));
        rest = after;
    }
    text.push_str(rest);
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
    Ok(parts)
}

/// A field's name as an identifier, raw where it is a keyword.
pub(crate) fn ident(name: &str) -> Option<Ident> {
    syn::parse_str(name).or_else(|_| syn::parse_str(&format!("r#{name}"))).ok()
}

fn field(name: &str) -> Result<String, String> {
    let bare = name.trim();
    let bare = bare.strip_prefix("r#").unwrap_or(bare);
    if bare.is_empty() {
        return Err(
            "`{}` in `biz_key` names no field; write the field's name between the braces".into()
        );
    }
    if bare.contains(':') {
        return Err(format!(
            "`{{{name}}}` in `biz_key` has a format, and a key is the plain value; write `{{{}}}`",
            bare.split(':').next().unwrap_or_default().trim()
        ));
    }
    if ident(bare).is_none() {
        return Err(format!(
            "`{{{name}}}` in `biz_key` is not the name of a field; a key is made of text and whole fields, or submit with `.biz_key(…)`"
        ));
    }
    Ok(bare.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Part {
        Part::Text(text.into())
    }

    fn named(name: &str) -> Part {
        Part::Field(name.into())
    }

    #[test]
    fn text_and_fields_alternate() {
        assert_eq!(
            parse("order:{order_id}/{ line }"),
            Ok(vec![text("order:"), named("order_id"), text("/"), named("line")])
        );
        assert_eq!(parse("{a}{b}"), Ok(vec![named("a"), named("b")]));
        assert_eq!(parse("{r#type}{über}"), Ok(vec![named("type"), named("über")]));
        assert_eq!(parse("all"), Ok(vec![text("all")]));
        assert_eq!(parse(""), Ok(vec![]));
    }

    #[test]
    fn a_doubled_brace_is_a_brace() {
        assert_eq!(parse("{{{a}}}"), Ok(vec![text("{"), named("a"), text("}")]));
        assert_eq!(parse("}}x{{"), Ok(vec![text("}x{")]));
    }

    #[test]
    fn what_is_no_template_says_why() {
        for (template, why) in [
            ("order:{id", "does not close"),
            ("order:id}", "does not open"),
            ("{}", "names no field"),
            ("{id:04}", "write `{id}`"),
            ("{order.id}", "not the name of a field"),
            ("{0}", "not the name of a field"),
            ("{a b}", "not the name of a field"),
            ("{self}", "not the name of a field"),
            ("{_}", "not the name of a field"),
            ("{a²}", "not the name of a field"),
        ] {
            let error = parse(template).expect_err(template);
            assert!(error.contains(why), "{template}: {error}");
        }
    }
}
