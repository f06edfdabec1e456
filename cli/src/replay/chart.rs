//! The requests over time, as a chart: what was granted, what was refused, and the rate.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;
use tollgate::Quota;

use super::stamps::{self, Requests};
use super::verdict::Verdict;

const GRANTED: RGBColor = RGBColor(36, 99, 160);
const REFUSED: RGBColor = RGBColor(222, 140, 58);
const SIZE: (u32, u32) = (1000, 420);
const COLUMNS: usize = 120;

/// Draws the chart into a file.
pub(crate) fn draw(path: &Path, quota: &Quota, requests: &Requests, verdict: &Verdict) -> Result<(), Box<dyn Error>> {
    let (first, last) = requests.span().unwrap_or_default();
    // At least a microsecond, for requests that came all at once.
    let micros = last.abs_diff(first).max(1);
    let seconds = micros as f64 / 1e6;
    let width = seconds / COLUMNS as f64;
    let mut columns = [[0_u64; 2]; COLUMNS];
    for (time, granted) in requests.micros.iter().zip(&verdict.grants) {
        let at = u128::from(time.abs_diff(first)) * COLUMNS as u128 / u128::from(micros);
        // The last one is on the edge.
        let at = usize::try_from(at).map_or(COLUMNS - 1, |at| at.min(COLUMNS - 1));
        if let Some(column) = columns.get_mut(at) {
            column[usize::from(!granted)] += 1;
        }
    }
    // In requests a second.
    let columns = columns.map(|counts| counts.map(|count| count as f64 / width));
    let rate = f64::from(quota.tokens()) / quota.period().as_secs_f64();
    let most = columns.iter().map(|[granted, refused]| granted + refused).fold(rate, f64::max);

    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let caption = format!("{quota}: {} granted, {} refused", verdict.granted, verdict.refused);
        let mut chart = ChartBuilder::on(&root)
            .caption(caption, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..seconds, 0.0..most * 1.05)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_desc(format!("seconds since {}", stamps::text(first)))
            .y_desc("requests a second")
            .draw()?;
        for (name, color, part) in [("granted", GRANTED, 0), ("refused", REFUSED, 1)] {
            let bars = columns.iter().enumerate().filter(|(_, counts)| counts[part] > 0.0).map(|(index, counts)| {
                let (left, low) = (index as f64 * width, if part == 0 { 0.0 } else { counts[0] });
                Rectangle::new([(left, low), (left + width, low + counts[part])], color.filled())
            });
            chart
                .draw_series(bars)?
                .label(name)
                .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], color.filled()));
        }
        chart
            .draw_series(LineSeries::new([(0.0, rate), (seconds, rate)], BLACK.stroke_width(1)))?
            .label("the rate")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 12, y)], BLACK.stroke_width(1)));
        let mut labels = chart.configure_series_labels();
        labels.position(SeriesLabelPosition::UpperRight).border_style(BLACK).background_style(WHITE).draw()?;
        root.present()?;
    }
    std::fs::write(path, text)?;
    Ok(())
}
