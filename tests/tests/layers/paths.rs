//! Finds the paths in a Rust source that start at the crate or leave their module.
//!
//! Reads tokens, not a syntax tree: a path counts wherever it stands, also inside of a macro.

pub(super) struct Token {
    pub(super) text: String,
    pub(super) line: usize,
}

/// Identifiers, `::` and single characters; no comments, literals or lifetimes.
pub(super) fn tokens(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let is = |at: usize, c: char| chars.get(at) == Some(&c);
    let word = |at: usize| chars.get(at).is_some_and(|c| c.is_alphanumeric() || *c == '_');
    let mut tokens = Vec::new();
    let (mut at, mut line, mut counted) = (0, 1, 0);
    while at < chars.len() {
        line += chars[counted..at].iter().filter(|c| **c == '\n').count();
        counted = at;
        let start = at;
        if is(at, '/') && is(at + 1, '/') {
            while at < chars.len() && !is(at, '\n') {
                at += 1;
            }
        } else if is(at, '/') && is(at + 1, '*') {
            let mut depth = 0;
            while at < chars.len() {
                match (chars[at], chars.get(at + 1)) {
                    ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
                    ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
                    _ => at += 1,
                }
                if depth == 0 {
                    break;
                }
            }
        } else if is(at, '"') {
            at += 1;
            while at < chars.len() && !is(at, '"') {
                at += if is(at, '\\') { 2 } else { 1 };
            }
            at += 1;
        } else if is(at, '\'') {
            if is(at + 1, '\\') {
                at += 3;
                while at < chars.len() && !is(at, '\'') {
                    at += 1;
                }
                at += 1;
            } else if is(at + 2, '\'') {
                at += 3;
            } else {
                at += 1;
                while word(at) {
                    at += 1;
                }
            }
        } else if word(at) {
            while word(at) {
                at += 1;
            }
            let text: String = chars[start..at].iter().collect();
            let hashes = chars[at..].iter().take_while(|c| **c == '#').count();
            if ["r", "br", "cr"].contains(&text.as_str()) && is(at + hashes, '"') {
                at += hashes + 1;
                while at < chars.len()
                    && !(is(at, '"') && (1..=hashes).all(|hash| is(at + hash, '#')))
                {
                    at += 1;
                }
                at += hashes + 1;
            } else {
                tokens.push(Token { text, line });
            }
        } else if is(at, ':') && is(at + 1, ':') {
            at += 2;
            tokens.push(Token { text: "::".into(), line });
        } else {
            at += 1;
            if !chars[start].is_whitespace() {
                tokens.push(Token { text: chars[start].into(), line });
            }
        }
    }
    tokens
}

/// A module names a path.
pub(super) struct Arrow {
    pub(super) from: Vec<String>,
    pub(super) to: Vec<String>,
    pub(super) line: usize,
}

/// Every path that starts at the crate or leaves its module, resolved from the crate's root.
pub(super) fn arrows(file: &[String], tokens: &[Token]) -> Vec<Arrow> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut arrows = Vec::new();
    let mut module = file.to_vec();
    let mut depth = 0;
    let mut inline = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match text(at) {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                if inline.last() == Some(&depth) {
                    inline.pop();
                    module.pop();
                }
            }
            "mod" if text(at + 2) == "{" => {
                module.push(text(at + 1).to_owned());
                inline.push(depth);
            }
            // `pub(in crate::store)` says who may look in; it imports nothing.
            "in" if at >= 2 && text(at - 1) == "(" && text(at - 2) == "pub" => {
                while text(at) != ")" {
                    at += 1;
                }
            }
            head @ ("crate" | "asynccmd") if text(at + 1) == "as" && text(at + 2) != head => {
                arrows.push(Arrow { from: module.clone(), to: vec![], line: tokens[at].line });
            }
            "crate" | "asynccmd" | "super" | "self" if text(at + 1) == "::" => {
                let mut leaves = Vec::new();
                let end = tree(tokens, at, &[], &mut leaves);
                arrows.extend(leaves.into_iter().map(|(path, line)| Arrow {
                    from: module.clone(),
                    to: resolve(&module, &path),
                    line,
                }));
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    arrows
}

/// Reads the path or `use` tree that starts at `at`, into its leaves; gives the place behind it.
pub(super) fn tree(
    tokens: &[Token],
    mut at: usize,
    prefix: &[String],
    leaves: &mut Vec<(Vec<String>, usize)>,
) -> usize {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut path = prefix.to_vec();
    loop {
        match text(at) {
            "{" => {
                at += 1;
                while !matches!(text(at), "}" | "") {
                    at = tree(tokens, at, &path, leaves);
                    // Past a comma, or `as name`, or what is no tree at all.
                    while !matches!(text(at), "," | "}" | "") {
                        at += 1;
                    }
                    at += usize::from(text(at) == ",");
                }
                return at + 1;
            }
            part if part == "*" || part.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                path.push(part.to_owned());
                at += 1;
            }
            _ => break,
        }
        if text(at) != "::" {
            break;
        }
        at += 1;
    }
    leaves.push((path, tokens.get(at.saturating_sub(1)).map_or(0, |token| token.line)));
    at
}

fn resolve(module: &[String], path: &[String]) -> Vec<String> {
    let mut to = module.to_vec();
    for part in path {
        match part.as_str() {
            "crate" | "asynccmd" => to.clear(),
            "super" => drop(to.pop()),
            "self" => {}
            part => to.push(part.to_owned()),
        }
    }
    to
}
