//! A change of the world changes the answer: a cell, a page, a file. One case for each kind of question.

use gaia_agent::offline::OfflineModel;
use gaia_agent::world::{Sheet, Value, World, picture, recording, report};

use crate::support::Scene;

type Change = fn(&mut World);

fn ask(world: &mut World, task: &str, change: impl Fn(&str) -> String) {
    let question = world.questions.iter_mut().find(|question| question.task_id == task).unwrap();
    question.question = change(&question.question);
}

fn sheet(rows: &[&[&str]]) -> Vec<u8> {
    let cell = |text: &&str| text.parse::<f64>().map_or_else(|_| Value::from(*text), Value::from);
    let rows = rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    Sheet { name: "Sales".into(), rows }.to_xlsx().unwrap()
}

fn article(world: &mut World, title: &str, from: &str, to: &str) {
    let text = world.articles.get_mut(title).unwrap();
    assert!(text.contains(from));
    *text = text.replace(from, to);
}

const CASES: [(&str, Change, &str); 20] = [
    ("pencils", |world| ask(world, "pencils", |text| text.replace("37 boxes", "3 boxes")), "25.2"),
    ("backwards", |world| ask(world, "backwards", |text| text.replace("thgir", "pu")), "down"),
    ("operation", |world| ask(world, "operation", |text| text.replace("|s|s|q|q|p|", "|s|s|r|p|p|")), "r, s"),
    (
        "harbours",
        |world| ask(world, "harbours", |text| text.replace("Kesselby, ", "")),
        "Aldersund, Birkfoss, Ostrahavn, Wrenmouth",
    ),
    (
        "kiosks",
        |world| {
            let rows: [&[&str]; 3] = [&["Kiosk", "Pies", "Soda"], &["A", "10.5", "3"], &["B", "20", "4"]];
            world.files.insert("kiosks".into(), sheet(&rows));
        },
        "30.50",
    ),
    (
        "station",
        |world| {
            let day = |day, heat: f64| vec![Value::Day(day), heat.into()];
            let rows = vec![vec!["Day".into(), "Temperature".into()], day(45_292, 1.0), day(45_351, -1.0)];
            world.files.insert("station".into(), Sheet { name: "Log".into(), rows }.to_xlsx().unwrap());
        },
        "2024-02-29",
    ),
    ("program", |world| drop(world.files.insert("program".into(), b"print(6 * 7)".to_vec())), "42"),
    (
        "message",
        |world| drop(world.files.insert("message".into(), recording("WAIT AT MILL 7").unwrap())),
        "MILL",
    ),
    ("sign", |world| drop(world.files.insert("sign".into(), picture("ROUTE 180").unwrap())), "180"),
    ("birds", |world| world.videos.get_mut("GaiaBirds01").unwrap().scenes.truncate(1), "2"),
    (
        "tea",
        |world| {
            world.videos.get_mut("GaiaTea0001").unwrap().lines[3] =
                "Not at all, it's <cold> & \"old\".".into()
        },
        "Not at all, it's <cold> & \"old\"",
    ),
    ("albums", |world| article(world, "Mira Solheim", "(2012)", "(2008)"), "4"),
    ("birthplace", |world| article(world, "Edda Lindqvist", "Varnhavn", "Skjelby"), "1718"),
    ("rings", |world| world.papers[0].comment = "23 pages".into(), "23"),
    (
        "keeper",
        |world| world.pages[0].text = world.pages[0].text.replace("Otto Brandvik", "Ida Falk"),
        "Falk",
    ),
    ("medals", |world| world.pages[2].text = world.pages[2].text.replace("14", "15"), "15"),
    (
        "award",
        |world| {
            let lines =
                ["The work of R. G. Arendsen was supported by the Polar Agency under award number 99(x)\\1."];
            world.files.insert("award".into(), report(&[&["Nothing here"], &lines]));
        },
        "99(x)\\1",
    ),
    (
        "pump",
        |world| world.files.get_mut("pump").unwrap().extend(b"2024-03-02 06:00:00 ERROR pump stopped\n"),
        "5",
    ),
    (
        "passengers",
        |world| {
            drop(
                world
                    .library
                    .insert("stations.csv".into(), b"code,name,passengers_1977\nAAA,A,7\nBBB,B,6\n".to_vec()),
            )
        },
        "BBB",
    ),
    (
        "programme",
        |world| {
            drop(world.files.insert("programme".into(), b"Songs by the composer Edda Lindqvist\n".to_vec()))
        },
        "1652",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn each_answer_changes_with_what_it_follows_from() {
    let plain = World::new();
    for (task, change, answer) in CASES {
        assert_ne!(plain.truths[task], answer, "{task}: the case changes nothing");
        let mut world = World::new();
        change(&mut world);
        let scene = Scene::of(world).await;
        let agent = scene.builder(OfflineModel::new()).python(scene.python()).build().unwrap();
        let solution = scene.solve(&agent, task).await;
        assert_eq!(solution.answer, answer, "{task}");
    }
}

#[tokio::test]
async fn without_what_it_follows_from_there_is_no_answer() {
    let mut world = World::new();
    world.articles.clear();
    world.pages.clear();
    world.papers.clear();
    world.videos.clear();
    world.files.clear();
    world.library.clear();
    let scene = Scene::of(world).await;
    let agent = scene.builder(OfflineModel::new()).build().unwrap();
    for task in [
        "albums",
        "birthplace",
        "keeper",
        "medals",
        "rings",
        "birds",
        "tea",
        "kiosks",
        "sign",
        "message",
        "award",
        "pump",
        "passengers",
    ] {
        let solution = scene.solve(&agent, task).await;
        assert_eq!(solution.answer, "unknown", "{task}: {solution:?}");
    }
}
