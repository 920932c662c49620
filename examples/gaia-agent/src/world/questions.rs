//! The twenty questions: their texts, their answers, and the world that the answers follow from.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::files::{Sheet, Value, picture, recording, report};
use super::{Page, Paper, Video, World};
use crate::question::Question;

/// What is written down as it is; the other files are made from it.
#[derive(Default, Deserialize)]
struct Written {
    /// With their answers.
    questions: Vec<Question>,
    articles: BTreeMap<String, String>,
    papers: Vec<Paper>,
    pages: Vec<Page>,
    videos: BTreeMap<String, Video>,
}

/// The sheet of the kiosks. The drinks are the last two columns.
pub(super) fn kiosks() -> Sheet {
    let head = ["Kiosk", "Pies", "Soups", "Salads", "Soda", "Coffee"].map(Value::from).to_vec();
    let rows = [
        ("Market", [1210.0, 640.5, 402.0, 310.0, 955.0]),
        ("Station", [1650.0, 720.0, 388.0, 512.25, 1433.0]),
        ("Harbour", [980.0, 1105.0, 295.0, 207.0, 616.5]),
        ("School", [455.0, 120.0, 225.0, 640.0, 88.0]),
    ];
    let rows =
        rows.map(|(kiosk, sales)| [Value::from(kiosk)].into_iter().chain(sales.map(Value::from)).collect());
    Sheet { name: "Sales".to_owned(), rows: [head].into_iter().chain(rows).collect() }
}

fn station() -> Sheet {
    let head = ["Day", "Temperature", "Wind"].map(Value::from).to_vec();
    let rows = [(-3.5, 4.0), (-9.0, 2.0), (-14.5, 1.0), (-14.0, 6.5), (-2.0, 8.0)];
    // The 15th of January 2024 is day 45306.
    let rows =
        (45_306..).zip(rows).map(|(day, (heat, wind))| vec![Value::Day(day), heat.into(), wind.into()]);
    Sheet { name: "Log".to_owned(), rows: [head].into_iter().chain(rows).collect() }
}

/// The pages are divided by form feeds.
fn the_report() -> Vec<u8> {
    let pages = include_str!("data/report.txt").split("\u{c}\n").map(|page| page.lines().collect());
    let pages: Vec<Vec<&str>> = pages.collect();
    report(&pages.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

pub(super) fn world() -> World {
    // It is a part of the program, and its tests read it.
    let mut written: Written = serde_json::from_str(include_str!("data/world.json")).unwrap_or_default();
    // Encoding into memory does not fail; an empty file would fail its question.
    let files: [(&str, Vec<u8>); 8] = [
        ("kiosks", kiosks().to_xlsx().unwrap_or_default()),
        ("station", station().to_xlsx().unwrap_or_default()),
        ("program", include_bytes!("data/program.py").into()),
        ("message", recording("MEET AT HARBOUR 9").unwrap_or_default()),
        ("sign", picture("ROUTE 47").unwrap_or_default()),
        ("award", the_report()),
        ("pump", include_bytes!("data/plant.log").into()),
        ("programme", include_bytes!("data/programme.txt").into()),
    ];
    let truths = written.questions.iter_mut();
    let truths = truths.filter_map(|question| Some((question.task_id.clone(), question.truth.take()?)));
    World {
        truths: truths.collect(),
        questions: written.questions,
        files: files.map(|(id, content)| (id.to_owned(), content)).into(),
        library: [("stations.csv".to_owned(), include_bytes!("data/stations.csv").into())].into(),
        articles: written.articles,
        papers: written.papers,
        pages: written.pages,
        videos: written.videos,
    }
}
