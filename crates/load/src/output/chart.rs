//! Draws line charts as SVG. It knows nothing about latencies.

use std::fmt::Write;

pub const WIDTH: f64 = 900.0;
/// The height of a panel with its title and its axis.
pub const HEIGHT: f64 = 320.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 50.0;

/// One per colour.
pub const SERIES_MAX: usize = 6;

pub struct Panel {
    pub title: String,
    pub x_title: &'static str,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
}

/// Maps values to positions from 0 to 1 along an axis, and chooses the labelled ones.
pub struct Axis {
    pub from: f64,
    pub to: f64,
    pub ticks: Vec<(f64, String)>,
}

pub struct Series {
    pub name: String,
    /// Whether to fill the area below the line.
    pub area: bool,
    pub points: Vec<(f64, f64)>,
}

impl Axis {
    /// A linear axis from 0, with round ticks.
    pub fn linear(to: f64, label: impl Fn(f64) -> String) -> Axis {
        let to = if to > 0.0 { to } else { 1.0 };
        let rough = to / 5.0;
        let magnitude = 10f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * magnitude);
        let step = steps.into_iter().find(|step| *step >= rough).unwrap_or(rough);
        let count = (to / step).floor() as usize;
        let ticks = (0..=count).map(|index| index as f64 * step);
        Axis { from: 0.0, to, ticks: ticks.map(|value| (value, label(value))).collect() }
    }

    fn position(&self, value: f64) -> f64 {
        let share = (value - self.from) / (self.to - self.from);
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// A complete document: panels, one below the other.
pub fn document(title: &str, panels: &[Panel]) -> String {
    let height = HEIGHT * panels.len() as f64 + 40.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n<rect class=\"back\" width=\"100%\" height=\"100%\"/>\n\
         <text class=\"title\" x=\"{LEFT}\" y=\"28\">{title}</text>\n",
        title = escape(title),
    );
    for (index, panel) in panels.iter().enumerate() {
        let _ = writeln!(svg, "<g transform=\"translate(0 {})\">", 40.0 + HEIGHT * index as f64);
        panel.draw(&mut svg);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

/// Colours for light and dark backgrounds, all with enough contrast to either.
const STYLE: &str = "
.back{fill:#fff}.title{fill:#111;font-size:16px;font-weight:600}.panel{fill:#111;font-weight:600}
.label{fill:#555}.grid{stroke:#ddd}.frame{fill:none;stroke:#999}.line{fill:none;stroke-width:2;stroke-linejoin:round}
.area{opacity:.15;stroke:none}.s0{stroke:#2563eb}.s1{stroke:#ea580c}.s2{stroke:#16a34a}.s3{stroke:#9333ea}.s4{stroke:#0e7490}.s5{stroke:#be123c}
.f0{fill:#2563eb}.f1{fill:#ea580c}.f2{fill:#16a34a}.f3{fill:#9333ea}.f4{fill:#0e7490}.f5{fill:#be123c}
@media (prefers-color-scheme:dark){.back{fill:#15181d}.title,.panel{fill:#eee}.label{fill:#aaa}.grid{stroke:#333}.frame{stroke:#666}
.s0{stroke:#60a5fa}.s1{stroke:#fb923c}.s2{stroke:#4ade80}.s3{stroke:#c084fc}.s4{stroke:#22d3ee}.s5{stroke:#fb7185}
.f0{fill:#60a5fa}.f1{fill:#fb923c}.f2{fill:#4ade80}.f3{fill:#c084fc}.f4{fill:#22d3ee}.f5{fill:#fb7185}}
";

impl Panel {
    fn draw(&self, svg: &mut String) {
        let _ = writeln!(
            svg,
            "<text class=\"panel\" x=\"{LEFT}\" y=\"36\">{}</text>",
            escape(&self.title)
        );
        self.draw_axes(svg);
        self.draw_legend(svg);
        for (index, series) in self.series.iter().take(SERIES_MAX).enumerate() {
            self.draw_series(index, series, svg);
        }
        let (width, height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
        let _ = writeln!(
            svg,
            "<rect class=\"frame\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{width}\" height=\"{height}\"/>"
        );
    }

    fn draw_axes(&self, svg: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for (value, label) in &self.x.ticks {
            let x = self.x_at(*value);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>\
                 <text class=\"label\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                bottom + 18.0,
                escape(label)
            );
        }
        for (value, label) in &self.y.ticks {
            let y = self.y_at(*value);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\
                 <text class=\"label\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                y + 4.0,
                escape(label)
            );
        }
        let _ = writeln!(
            svg,
            "<text class=\"label\" x=\"{right}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            bottom + 38.0,
            escape(self.x_title)
        );
    }

    fn draw_legend(&self, svg: &mut String) {
        let mut right = WIDTH - RIGHT;
        for (index, series) in self.series.iter().take(SERIES_MAX).enumerate().rev() {
            let _ = writeln!(
                svg,
                "<text class=\"f{index}\" x=\"{right:.0}\" y=\"36\" text-anchor=\"end\">{}</text>",
                escape(&series.name)
            );
            // The widths of letters are unknown here, so every letter counts as a wide one.
            right -= 8.0 * series.name.chars().count() as f64 + 18.0;
        }
    }

    fn draw_series(&self, index: usize, series: &Series, svg: &mut String) {
        let points = series.points.iter();
        let points: Vec<String> =
            points.map(|(x, y)| format!("{:.1},{:.1}", self.x_at(*x), self.y_at(*y))).collect();
        let points = points.join(" ");
        if series.area
            && let (Some(first), Some(last)) = (series.points.first(), series.points.last())
        {
            let (first, last, bottom) = (self.x_at(first.0), self.x_at(last.0), HEIGHT - BOTTOM);
            let _ = writeln!(
                svg,
                "<polygon class=\"area f{index}\" points=\"{first:.1},{bottom} {points} {last:.1},{bottom}\"/>"
            );
        }
        let _ = writeln!(svg, "<polyline class=\"line s{index}\" points=\"{points}\"/>");
    }

    fn x_at(&self, value: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * self.x.position(value)
    }

    fn y_at(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * self.y.position(value)
    }
}

pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
