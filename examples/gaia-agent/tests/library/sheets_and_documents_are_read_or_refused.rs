//! Spreadsheets, PDFs and texts: what is in them, and files that were made to break a reader.

use std::io::{Cursor, Write};
use std::time::Duration;

use gaia_agent::world::{Sheet, Value, World, report};
use proptest::prelude::*;
use serde_json::json;
use zip::write::SimpleFileOptions;

use crate::support::{Scene, call, changed};

async fn sheet(content: Vec<u8>) -> Result<String, String> {
    let scene = Scene::new().await;
    scene.folder.write("here/book.xlsx", content);
    call(&scene, "read_excel", json!({ "path": "book.xlsx" })).await
}

async fn text(content: impl AsRef<[u8]>) -> Result<String, String> {
    let scene = Scene::new().await;
    scene.folder.write("here/file", content);
    call(&scene, "read_file", json!({ "path": "file" })).await
}

const SHEET: &str = "xl/worksheets/sheet1.xml";

#[tokio::test]
async fn cells_are_shown_with_their_places_and_dates_as_dates() {
    let rows = vec![
        vec!["Day".into(), "Pies & <pasties>".into(), Value::Empty, "Note".into()],
        vec![Value::Day(45_306), 1210.5.into(), Value::Empty, "two\nlines\tand a tab".into()],
        vec![],
        vec![Value::Day(1), (-3.0).into(), 0.1.into()],
    ];
    let book = Sheet { name: "My \"sales\"".into(), rows }.to_xlsx().unwrap();
    assert_eq!(
        sheet(book).await.unwrap(),
        "Sheets: My \"sales\"\n\n## My \"sales\" (4 rows, 4 columns)\nrow\tA\tB\tC\tD\n1\tDay\tPies & <pasties>\t\tNote\n\
         2\t2024-01-15\t1210.5\t\ttwo lines and a tab\n4\t1900-01-01\t-3\t0.1\n"
    );
}

#[tokio::test]
async fn a_formula_without_a_stored_result_is_named() {
    let rows = vec![vec![2.0.into()], vec![3.0.into()], vec![Value::Formula("SUM(A1:A2)".into())]];
    let book = Sheet { name: "S".into(), rows }.to_xlsx().unwrap();
    let shown = sheet(book.clone()).await.unwrap();
    assert!(
        shown.contains("3\t[no value]\n")
            && shown.contains("A3 is the formula `=SUM(A1:A2)`, whose result the file does not have"),
        "{shown}"
    );
    let stored = changed(&book, SHEET, |xml| xml.replace("</f></c>", "</f><v>5</v></c>"));
    let shown = sheet(stored).await.unwrap();
    assert!(shown.contains("3\t5\n") && !shown.contains("formula"), "{shown}");
}

#[tokio::test]
async fn sheets_are_chosen_by_name_and_an_empty_one_says_so() {
    let scene = Scene::new().await;
    let book = Sheet { name: "Blank".into(), rows: vec![] }.to_xlsx().unwrap();
    scene.folder.write("here/book.xlsx", book);
    let ask = |sheet: &str| json!({ "path": "book.xlsx", "sheet": sheet });
    assert!(call(&scene, "read_excel", ask("blank")).await.unwrap().contains("The sheet is empty."));
    let error = call(&scene, "read_excel", ask("Other")).await.unwrap_err();
    assert!(error.contains("there is no sheet `Other`; the sheets are Blank"), "{error}");
}

#[tokio::test]
async fn files_made_to_break_a_reader_of_sheets_are_refused_or_cut() {
    let book = World::new().files["kiosks"].clone();
    // One cell in the last corner: a reader that makes room for all cells before it takes 400 GB.
    let far = changed(&book, SHEET, |xml| {
        xml.replace("</sheetData>", "<row r=\"1048576\"><c r=\"XFD1048576\"><v>1</v></c></row></sheetData>")
    });
    let shown = sheet(far).await.unwrap();
    assert!(
        shown.contains("1048576 rows, 16384 columns") && shown.contains("columns are shown"),
        "{}",
        &shown[..200]
    );
    // Small, and 130 MiB of zeros when it is unpacked.
    let mut bomb = zip::ZipWriter::new(Cursor::new(Vec::new()));
    bomb.start_file("xl/workbook.xml", SimpleFileOptions::default()).unwrap();
    for _ in 0..130 {
        bomb.write_all(&[0; 1 << 20]).unwrap();
    }
    let bomb = bomb.finish().unwrap().into_inner();
    assert!(bomb.len() < 1 << 20);
    let error = sheet(bomb).await.unwrap_err();
    assert!(error.contains("unpacks to more than 128 MiB"), "{error}");
    for content in [
        b"".to_vec(),
        b"PK".to_vec(),
        b"plain text".to_vec(),
        book[..book.len() / 2].to_vec(),
        vec![0xd0, 0xcf, 0x11, 0xe0],
    ] {
        assert!(sheet(content).await.is_err());
    }
    // Entities are not expanded.
    let entities = changed(&book, SHEET, |xml| {
        let head = "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;\">]>";
        xml.replace("<worksheet", &format!("{head}<worksheet")).replace("Market", "&b;")
    });
    let shown = sheet(entities).await.unwrap_or_default();
    assert!(!shown.contains("aaaaaaaaaa"), "{shown}");
}

#[tokio::test]
async fn the_text_layer_of_a_pdf_is_shown_page_by_page() {
    let pdf = report(&[&["First page (one)", "second line \\ here"], &["Second page"]]);
    let shown = text(&pdf).await.unwrap();
    assert!(
        shown.starts_with("[page 1]\nFirst page (one)\nsecond line \\ here\n\n[page 2]\nSecond page"),
        "{shown}"
    );
    let empty = text(report(&[&[]])).await.unwrap_err();
    assert!(empty.contains("no text layer: its 1 pages are pictures"), "{empty}");
}

#[tokio::test]
async fn files_made_to_break_a_reader_of_pdfs_are_refused() {
    let pdf = report(&[&["text"]]);
    let replaced =
        |from: &str, to: &str| String::from_utf8(pdf.clone()).unwrap().replace(from, to).into_bytes();
    for content in [
        b"%PDF-1.4\n".to_vec(),
        pdf[..pdf.len() / 2].to_vec(),
        // Pages that are their own children, and a length that lies.
        replaced("/Kids [4 0 R ]", "/Kids [2 0 R ]"),
        replaced("/Length ", "/Length 99999999"),
        replaced("startxref\n", "startxref\n99999999"),
        [b"%PDF-1.4\n1 0 obj\n".to_vec(), b"[".repeat(200_000)].concat(),
        [b"%PDF-1.4\n1 0 obj\n".to_vec(), b"<<".repeat(200_000)].concat(),
    ] {
        let shown = tokio::time::timeout(Duration::from_secs(60), text(&content)).await.expect("it ends");
        assert!(
            shown.is_err() || shown.unwrap().contains("text"),
            "{:?}",
            String::from_utf8_lossy(&content[..40.min(content.len())])
        );
    }
}

#[tokio::test]
async fn texts_of_several_encodings_are_read_and_other_data_is_named() {
    assert_eq!(text("größer\n").await.unwrap(), "größer\n");
    assert_eq!(text(b"\xef\xbb\xbfwith a mark").await.unwrap(), "with a mark");
    let guessed = |encoding: &str, text: &str| format!("[the text is in {encoding}, by a guess]\n{text}");
    let marked = "[the text is in UTF-16LE, as its first bytes say]\nhi";
    assert_eq!(text(b"\xff\xfeh\x00i\x00").await.unwrap(), marked);
    assert_eq!(text(b"\xfe\xff\x00h\x00i").await.unwrap(), marked.replace("LE", "BE"));
    assert_eq!(text(b"\x00h\x00i\x00!").await.unwrap(), guessed("UTF-16BE", "hi!"));
    assert_eq!(text(b"caf\xe9").await.unwrap(), guessed("windows-1252", "café"));
    assert_eq!(text(b"").await.unwrap(), "[the file is empty]");
    for (bytes, part) in [
        (&b"\x89PNG\r\n\x1a\n\x00"[..], "`analyze_image`"),
        (b"PK\x03\x04\x00\x00", "the archive is broken"),
        (b"RIFF\x00\x00\x00\x00WAVE", "`understand_audio`"),
        (b"a\x00b", "no tool of this run reads it"),
    ] {
        let error = text(bytes).await.unwrap_err();
        assert!(error.contains(part), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Bytes of a good file, some of them changed: whatever a reader makes of them, the tool answers.
    #[test]
    fn changed_files_never_end_the_agent(changes in prop::collection::vec((any::<u16>(), any::<u8>()), 1..12), cut in any::<u16>()) {
        let world = World::new();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        for (task, is_sheet) in [("kiosks", true), ("award", false)] {
            let mut bytes = world.files[task].clone();
            for (at, byte) in &changes {
                let at = usize::from(*at) % bytes.len();
                bytes[at] = *byte;
            }
            bytes.truncate(bytes.len() - usize::from(cut) % (bytes.len() / 4));
            let shown = runtime.block_on(async { if is_sheet { sheet(bytes).await } else { text(bytes).await } });
            let said = shown.unwrap_or_else(|error| error);
            prop_assert!(!said.trim().is_empty());
        }
    }
}
