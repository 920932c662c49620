//! The twenty questions: their texts, their answers, and the world that the answers follow from.

use std::collections::BTreeMap;

use super::files::{Sheet, Value, picture, recording, report};
use super::{Page, Paper, Video, World};
use crate::question::Question;

/// A question: id, level, file, text and answer.
type Row = (&'static str, u8, &'static str, &'static str, &'static str);

const QUESTIONS: [Row; 20] = [
    (
        "pencils",
        1,
        "",
        "A shop sells 37 boxes of 24 pencils for $0.35 a pencil. How much money is that in dollars? Give the number alone.",
        "310.80",
    ),
    ("backwards", 1, "", ".thgir drow eht fo etisoppo eht etirw ,ecnetnes siht dnatsrednu uoy fI", "left"),
    (
        "operation",
        1,
        "",
        "Given this table defining * on the set S = {p, q, r, s}\n\n|*|p|q|r|s|\n|---|---|---|---|---|\n|p|p|q|r|s|\n|q|q|s|p|r|\n|r|r|p|s|q|\n|s|s|q|q|p|\n\nwhich elements of S are involved in any possible counter-example to * being commutative? Give them as a comma separated list in alphabetical order.",
        "q, s",
    ),
    (
        "harbours",
        1,
        "",
        "Put these harbours in alphabetical order, as a comma separated list: Wrenmouth, Aldersund, Kesselby, Ostrahavn, Birkfoss.",
        "Aldersund, Birkfoss, Kesselby, Ostrahavn, Wrenmouth",
    ),
    (
        "kiosks",
        1,
        "kiosks.xlsx",
        "The attached spreadsheet has the sales of a chain of kiosks in dollars. What were the total sales of food, without drinks? Give the number with two decimal places.",
        "8190.50",
    ),
    (
        "station",
        1,
        "station.xlsx",
        "The attached spreadsheet is the log of a weather station. On which day was the lowest temperature? Answer in the form YYYY-MM-DD.",
        "2024-01-17",
    ),
    ("program", 1, "program.py", "What is the final numeric output of the attached Python code?", "2584"),
    (
        "message",
        1,
        "message.wav",
        "The attached recording is a message in Morse code. Which word follows the word AT in it?",
        "HARBOUR",
    ),
    (
        "sign",
        1,
        "sign.png",
        "The attached image shows the sign of a bus stop. What is the number of the route on it?",
        "47",
    ),
    (
        "birds",
        1,
        "",
        "In the video https://www.youtube.com/watch?v=GaiaBirds01, what is the highest number of bird species that are on camera at the same time?",
        "4",
    ),
    (
        "tea",
        1,
        "",
        "In the video https://www.youtube.com/watch?v=GaiaTea0001, what does Runa say in response to the question \"Isn't that hot?\"",
        "Extremely",
    ),
    (
        "albums",
        1,
        "",
        "How many studio albums did Mira Solheim publish between 2000 and 2009, both years included? You can use Wikipedia.",
        "3",
    ),
    (
        "birthplace",
        2,
        "",
        "In which year was the birthplace of the composer Edda Lindqvist founded, according to Wikipedia?",
        "1652",
    ),
    (
        "rings",
        2,
        "",
        "How many pages has the arXiv paper \"Tidal locking of ring worlds\", according to the comment of its authors?",
        "17",
    ),
    (
        "keeper",
        1,
        "",
        "Search the web: what is the surname of the person who was the lighthouse keeper of Kesselby in 1911?",
        "Brandvik",
    ),
    (
        "medals",
        1,
        "",
        "Find out with a web search: how many medals did Tornland win at the Northern Games of 1930?",
        "14",
    ),
    (
        "award",
        2,
        "report.pdf",
        "According to the attached report, under which award number was the work of R. G. Arendsen supported by the Polar Agency?",
        "80PA22M0031",
    ),
    ("pump", 1, "plant.log", "How many lines of the attached log are errors of the module pump?", "4"),
    (
        "passengers",
        2,
        "",
        "Download /library/stations.csv from the server of this evaluation. Which station had the fewest passengers in 1977? Answer with its code.",
        "OSV",
    ),
    (
        "programme",
        3,
        "programme.txt",
        "The attached programme of a concert names a composer. In which year was the birthplace of that composer founded, according to Wikipedia?",
        "1718",
    ),
];

const PROGRAM: &str = "# The largest even Fibonacci number below a bound.
def fibonacci(bound):
    a, b = 1, 2
    while a < bound:
        yield a
        a, b = b, a + b


print(\"begin\")
print(max(number for number in fibonacci(4000) if number % 2 == 0))
";

const LOG: &str = "2024-03-02 04:10:11 INFO pump started
2024-03-02 04:10:15 ERROR valve does not close
2024-03-02 04:12:00 ERROR pump lost pressure
2024-03-02 04:12:09 WARNING pump runs hot
2024-03-02 04:13:40 ERROR pump stopped
2024-03-02 04:20:02 INFO pump started
2024-03-02 05:01:59 ERROR pump lost pressure
2024-03-02 05:02:00 ERROR power low
2024-03-02 05:07:21 ERROR pump stopped
";

const STATIONS: &str = "code,name,passengers_1976,passengers_1977
KBY,Kesselby,41200,40950
WRM,Wrenmouth,38710,39004
OSV,Ostrahavn,39000,37115
BFS,Birkfoss,37350,37420
";

const PROGRAMME: &str = "Evening of the 12th of June, great hall of Wrenmouth

1. Overture, by the orchestra
2. Three songs of the sea, by the composer Tove Aakre
3. Supper
";

const ARTICLES: [(&str, &str); 6] = [
    (
        "Mira Solheim",
        "Mira Solheim (born 1974) is a singer from Wrenmouth.\n\n== Discography ==\n=== Studio albums ===\n* Fjord (1998)\n* Salt and Smoke (2001)\n* The Ninth Wave (2005)\n* Lanterns (2009)\n* Home Water (2012)\n\n=== Live albums ===\n* Live in Kesselby (2003)\n",
    ),
    (
        "Edda Lindqvist",
        "Edda Lindqvist (1801-1866) was a composer. She was born in Varnhavn and studied in Wrenmouth.",
    ),
    (
        "Tove Aakre",
        "Tove Aakre (1880-1951) was a composer of songs. She was born in Skjelby, the daughter of a fisher.",
    ),
    ("Varnhavn", "Varnhavn is a town on the northern coast. It was founded in 1652 and burned down in 1781."),
    ("Skjelby", "Skjelby is a fishing town in the west. It was founded in 1718 by settlers."),
    ("Wrenmouth", "Wrenmouth is a port. It was founded in 1410."),
];

fn pages() -> Vec<Page> {
    let page =
        |title: &str, url: &str, text: &str| Page { title: title.into(), url: url.into(), text: text.into() };
    vec![
        page(
            "The lights of the northern coast",
            "https://lights.example/kesselby",
            "In 1911 the lighthouse keeper of Kesselby was Otto Brandvik, who kept the light for thirty years.",
        ),
        page(
            "Kesselby, a walk",
            "https://walks.example/kesselby?page=2",
            "From the market of Kesselby a path leads to the old lighthouse.",
        ),
        page(
            "Northern Games of 1930: the table",
            "https://games.example/1930",
            "At the Northern Games of 1930 Tornland won 14 medals and Vesterland 9 medals.",
        ),
        page(
            "Northern Games of 1934",
            "https://games.example/1934",
            "At the Northern Games of 1934 Tornland won 11 medals.",
        ),
    ]
}

fn papers() -> Vec<Paper> {
    let paper = |id: &str, title: &str, author: &str, submitted: &str, comment: &str| Paper {
        id: id.into(),
        title: title.into(),
        authors: vec![author.into()],
        submitted: submitted.into(),
        summary: format!("We study the subject of this paper: {}.", title.to_lowercase()),
        comment: comment.into(),
    };
    vec![
        paper(
            "2103.04567v2",
            "Tidal locking of ring worlds",
            "Ngozi Okafor",
            "2021-03-09",
            "17 pages, 5 figures",
        ),
        paper("1911.01234v1", "Tidal heating of small moons", "Jan Dekker", "2019-11-02", "9 pages"),
    ]
}

fn videos() -> BTreeMap<String, Video> {
    let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    let birds = Video {
        scenes: lines(&[
            "0:05 - 2 bird species are on camera: a gull and a tern.",
            "0:41 - 4 bird species are on camera: a gull, a tern, a skua and a puffin.",
            "1:30 - 3 bird species are on camera: a gull, a skua and an eider.",
        ]),
        ..Video::default()
    };
    let tea = Video {
        lines: lines(&[
            "Welcome to the tea house.",
            "Runa takes the kettle.",
            "Isn't that hot?",
            "Extremely.",
            "Now we wait.",
        ]),
        ..Video::default()
    };
    [("GaiaBirds01".to_owned(), birds), ("GaiaTea0001".to_owned(), tea)].into()
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
    // The 15th of January 2024 is day 45306.
    let rows = [
        (45_306, -3.5, 4.0),
        (45_307, -9.0, 2.0),
        (45_308, -14.5, 1.0),
        (45_309, -14.0, 6.5),
        (45_310, -2.0, 8.0),
    ];
    let rows = rows.map(|(day, heat, wind)| vec![Value::Day(day), heat.into(), wind.into()]);
    Sheet { name: "Log".to_owned(), rows: [head].into_iter().chain(rows).collect() }
}

fn the_report() -> Vec<u8> {
    report(&[
        &["Annual report of the observatory", "", "The winter was long. Of nine nights two were clear."],
        &[
            "Acknowledgements",
            "",
            "The work of J. Holm was supported by the Sea Council under award number 11SC20K0007.",
            "The work of R. G. Arendsen was supported by the Polar Agency",
            "under award number 80PA22M0031.",
        ],
    ])
}

pub(super) fn world() -> World {
    let question = |(id, level, file, text, _): &Row| Question {
        task_id: (*id).to_owned(),
        question: (*text).to_owned(),
        level: *level,
        file_name: (*file).to_owned(),
        truth: None,
    };
    // Encoding into memory does not fail; an empty file would fail its question.
    let files = [
        ("kiosks", kiosks().to_xlsx().unwrap_or_default()),
        ("station", station().to_xlsx().unwrap_or_default()),
        ("program", PROGRAM.into()),
        ("message", recording("MEET AT HARBOUR 9").unwrap_or_default()),
        ("sign", picture("ROUTE 47").unwrap_or_default()),
        ("award", the_report()),
        ("pump", LOG.into()),
        ("programme", PROGRAMME.into()),
    ];
    let text = |text: &str| text.to_owned();
    World {
        questions: QUESTIONS.iter().map(question).collect(),
        truths: QUESTIONS.iter().map(|(id, _, _, _, truth)| (text(id), text(truth))).collect(),
        files: files.map(|(id, content)| (text(id), content)).into(),
        library: [(text("stations.csv"), STATIONS.into())].into(),
        articles: ARTICLES.map(|(title, article)| (text(title), text(article))).into(),
        papers: papers(),
        pages: pages(),
        videos: videos(),
    }
}
