//! The rate of drains over time, as a drawing.

use std::fmt::Write as _;
use std::path::Path;

use crate::Result;
use crate::figures::Course;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 420.0;
/// Room for the axes' words.
const EDGE: f64 = 60.0;
const COLOURS: [&str; 6] = ["#8a8a8a", "#1f77b4", "#bfbf8a", "#2ca02c", "#d62728", "#9467bd"];

/// Writes the drawing. Nothing for no drains.
pub(crate) fn write(file: &Path, title: &str, courses: &[Course]) -> Result<()> {
    if courses.is_empty() {
        return Ok(());
    }
    if let Some(dir) = file.parent() {
        std::fs::create_dir_all(dir)?;
    }
    Ok(std::fs::write(file, draw(title, courses))?)
}

fn draw(title: &str, courses: &[Course]) -> String {
    let points = || courses.iter().flat_map(|course| &course.points);
    let longest = points().map(|point| point.0).fold(f64::MIN_POSITIVE, f64::max);
    let fastest = points().map(|point| point.1).fold(1.0, f64::max);
    let x = |seconds: f64| EDGE + seconds / longest * (WIDTH - 2.0 * EDGE);
    let y = |rate: f64| HEIGHT - EDGE - rate / fastest * (HEIGHT - 2.0 * EDGE);

    let mut svg = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' \
         font-family='sans-serif' font-size='12'>\n\
         <rect width='100%' height='100%' fill='white'/>\n\
         <text x='{EDGE}' y='24' font-size='15'>{title}</text>\n"
    );
    for quarter in 0..=4 {
        let share = f64::from(quarter) / 4.0;
        let (down, across) = (y(fastest * share), x(longest * share));
        // The text of a drawing: writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<line x1='{EDGE}' x2='{right}' y1='{down:.1}' y2='{down:.1}' stroke='#ddd'/>\
             <text x='{left}' y='{down:.1}' text-anchor='end'>{thousands:.0}k/s</text>\
             <text x='{across:.1}' y='{below}' text-anchor='middle'>{seconds:.2} s</text>",
            right = WIDTH - EDGE,
            left = EDGE - 6.0,
            thousands = fastest * share / 1e3,
            below = HEIGHT - EDGE + 18.0,
            seconds = longest * share,
        );
    }
    for (at, course) in courses.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        let line: Vec<_> = course
            .points
            .iter()
            .map(|(seconds, rate)| format!("{:.1},{:.1}", x(*seconds), y(*rate)))
            .collect();
        let _ = writeln!(
            svg,
            "<polyline fill='none' stroke='{colour}' stroke-width='2' points='{}'/>\
             <text x='{left}' y='{down}' fill='{colour}'>{}</text>",
            line.join(" "),
            course.name,
            left = EDGE + 190.0 * at as f64,
            down = HEIGHT - 14.0,
        );
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_is_a_line_within_the_axes() {
        let points = vec![(0.0, 0.0), (2.0, 1000.0)];
        let svg = draw("drains", &[Course { name: "runtime".into(), points }]);
        assert!(svg.contains("points='60.0,360.0 840.0,60.0'"), "{svg}");
        assert!(svg.contains(">runtime</text>"));
    }
}
