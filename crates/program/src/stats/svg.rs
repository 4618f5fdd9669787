//! Pictures as SVG: the few shapes that a chart is made of, and text that is nothing but text.

use std::fmt::Write;

/// A colour: red, green, blue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Colour(pub(super) u8, pub(super) u8, pub(super) u8);

impl std::fmt::Display for Colour {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Colour(red, green, blue) = self;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

/// The part of a text that is at its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Left,
    Centre,
    Right,
}

/// How text looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Type {
    /// Pixels.
    pub(super) size: i32,
    pub(super) colour: Colour,
    pub(super) side: Side,
    pub(super) bold: bool,
}

/// A picture under construction. Places and lengths are pixels, from the upper left corner.
pub(super) struct Picture(String);

impl Picture {
    /// A white page, with a title for screen readers.
    pub(super) fn new(width: i32, height: i32, title: &str) -> Self {
        let mut picture = Picture(String::new());
        picture.line(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\">"
        ));
        picture.line(format_args!("<title>{}</title>", escaped(title)));
        picture.rectangle((0, 0), (width, height), Colour(0xff, 0xff, 0xff));
        picture
    }

    /// A filled rectangle between two corners.
    pub(super) fn rectangle(
        &mut self,
        upper_left: (i32, i32),
        lower_right: (i32, i32),
        fill: Colour,
    ) {
        let ((x, y), (right, bottom)) = (upper_left, lower_right);
        let (width, height) = (right - x, bottom - y);
        self.line(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\"/>"
        ));
    }

    /// A filled circle.
    pub(super) fn circle(&mut self, (x, y): (i32, i32), radius: i32, fill: Colour) {
        self.line(format_args!(
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{fill}\"/>"
        ));
    }

    /// A straight line so many pixels wide.
    pub(super) fn stroke(&mut self, from: (i32, i32), to: (i32, i32), colour: Colour, width: i32) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.line(format_args!(
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>"
        ));
    }

    /// A line of text, whose middle is at the height of its place.
    pub(super) fn text(&mut self, text: &str, (x, y): (i32, i32), look: Type) {
        let Type {
            size,
            colour,
            side,
            bold,
        } = look;
        let anchor = match side {
            Side::Left => "start",
            Side::Centre => "middle",
            Side::Right => "end",
        };
        let weight = if bold { " font-weight=\"bold\"" } else { "" };
        let text = escaped(text);
        self.line(format_args!(
            "<text x=\"{x}\" y=\"{y}\" dy=\"0.35em\" font-size=\"{size}\" text-anchor=\"{anchor}\" fill=\"{colour}\"{weight}>{text}</text>"
        ));
    }

    /// The file.
    pub(super) fn finish(mut self) -> String {
        self.0 += "</svg>\n";
        self.0
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{line}").expect("a string takes all that is written to it");
    }
}

/// Text that stands for itself in XML 1.0, within elements and within attributes. Characters that XML has no place for become U+FFFD.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            '\t' | '\n' | '\r' => escaped.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_no_markup() {
        let mut picture = Picture::new(10, 20, "</title><script>");
        let look = Type {
            size: 13,
            colour: Colour(0, 0x72, 0xb2),
            side: Side::Right,
            bold: true,
        };
        let evil = "\"'</text><script>alert(1)</script>&#0;\u{0}\u{1b}[31m\u{ffff}\n—";
        picture.text(evil, (3, -4), look);
        let svg = picture.finish();
        assert!(!svg.contains("<script"), "{svg}");
        let expected = "<text x=\"3\" y=\"-4\" dy=\"0.35em\" font-size=\"13\" text-anchor=\"end\" fill=\"#0072b2\" font-weight=\"bold\">\
            &quot;&#39;&lt;/text&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;#0;\u{fffd}\u{fffd}[31m\u{fffd} —</text>\n";
        assert!(svg.contains(expected), "{svg}");
        assert!(
            svg.contains("<title>&lt;/title&gt;&lt;script&gt;</title>"),
            "{svg}"
        );
    }

    #[test]
    fn shapes_are_where_they_were_put() {
        let mut picture = Picture::new(10, 20, "t");
        picture.rectangle((1, 2), (4, 8), Colour(1, 2, 3));
        picture.circle((5, 6), 7, Colour(0xff, 0, 0));
        picture.stroke((1, 1), (2, 3), Colour(0, 0, 0), 2);
        let svg = picture.finish();
        let lines: Vec<&str> = svg.lines().collect();
        assert_eq!(
            lines[3..],
            [
                "<rect x=\"1\" y=\"2\" width=\"3\" height=\"6\" fill=\"#010203\"/>",
                "<circle cx=\"5\" cy=\"6\" r=\"7\" fill=\"#ff0000\"/>",
                "<line x1=\"1\" y1=\"1\" x2=\"2\" y2=\"3\" stroke=\"#000000\" stroke-width=\"2\"/>",
                "</svg>"
            ]
        );
    }
}
