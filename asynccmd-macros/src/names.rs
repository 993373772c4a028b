//! Names made from names, and the one that was probably meant.

/// `interpret_report` as `InterpretReport`. What is behind an underscore starts with a capital; the rest
/// stays as it is, so `send_HTTP` becomes `SendHTTP`.
pub(crate) fn camel_case(name: &str) -> String {
    let mut camel = String::with_capacity(name.len());
    for word in name.split('_') {
        let mut letters = word.chars();
        if let Some(first) = letters.next() {
            camel.extend(first.to_uppercase());
            camel.push_str(letters.as_str());
        }
    }
    camel
}

/// `InterpretReport` as `interpret_report`. A row of capitals is one word, so `SendHTTP` becomes
/// `send_http`.
pub(crate) fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::with_capacity(name.len() + 4);
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| letters[at]);
        let ends_capitals = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        let starts_word = match before {
            None | Some('_') => false,
            Some(before) => !before.is_uppercase() || ends_capitals,
        };
        if letter.is_uppercase() && starts_word {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// The known name nearest to `word`, if it is near enough to have been meant: at most a third of its
/// letters apart, and at least one.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|name| (distance(word, name), name))
        .filter(|(apart, _)| *apart <= limit)
        .min_by_key(|(apart, _)| *apart)
        .map(|(_, name)| name)
}

/// Letters inserted, left out, exchanged, or swapped with their neighbour, the fewest that turn one
/// word into the other.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let exchanged = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let mut best = exchanged.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best = best.min(rows[i - 2][j - 2] + 1);
                }
                best
            };
        }
    }
    rows[a.len()][b.len()]
}

/// `` `a`, `b` and `c` ``.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_names_become_type_names() {
        for (function, name) in [
            ("interpret_report", "InterpretReport"),
            ("step_2", "Step2"),
            ("_hidden__twice_", "HiddenTwice"),
            ("send_HTTP", "SendHTTP"),
            ("über_weisung", "ÜberWeisung"),
            ("move", "Move"),
            ("__", ""),
        ] {
            assert_eq!(camel_case(function), name);
        }
    }

    #[test]
    fn type_names_become_function_names() {
        for (name, function) in [
            ("InterpretReport", "interpret_report"),
            ("Step2", "step2"),
            ("SendHTTP", "send_http"),
            ("HTTPServer", "http_server"),
            ("ÜberWeisung", "über_weisung"),
            ("Already_snake", "already_snake"),
            ("plain", "plain"),
        ] {
            assert_eq!(snake_case(name), function);
        }
    }

    #[test]
    fn a_slip_finds_the_name_that_was_meant() {
        let known = ["type", "mode", "pool", "priority", "timeout", "max_retry"];
        assert_eq!(nearest("tpye", known), Some("type"));
        assert_eq!(nearest("prioritiy", known), Some("priority"));
        assert_eq!(nearest("max_retries", known), Some("max_retry"));
        assert_eq!(nearest("schedule", known), None);
    }

    #[test]
    fn lists_read_as_sentences() {
        assert_eq!(list([]), "");
        assert_eq!(list(["a"]), "`a`");
        assert_eq!(list(["a", "b", "c"]), "`a`, `b` and `c`");
    }
}
