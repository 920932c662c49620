//! Files that were made to fill the memory or the time of a reader, one of each kind.

use std::io::{Cursor, Write};
use std::time::Duration;

use serde_json::json;
use zip::write::SimpleFileOptions;

use crate::support::{Scene, call, changed, fixture};

fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in members {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

async fn read(tool: &str, name: &str, content: Vec<u8>) -> Result<String, String> {
    let scene = Scene::new().await;
    scene.folder.write(&format!("here/{name}"), content);
    let read = call(&scene, tool, json!({ "path": name }));
    tokio::time::timeout(Duration::from_secs(120), read).await.expect("it ends")
}

#[tokio::test]
async fn members_that_become_much_longer_are_refused_and_the_others_are_shown() {
    let zeros = vec![0; 40 << 20];
    let bomb = archive(&[("zeros", &zeros), ("note.txt", b"the value is 7")]);
    assert!(bomb.len() < 100_000);
    let text = read("read_file", "bomb.zip", bomb).await.unwrap();
    assert!(text.contains("bomb.zip/zeros (`zeros` in the archive unpacks to more than"), "{text}");
    assert!(text.contains("the value is 7"), "{text}");
    for (name, part) in [("a.docx", "word/document.xml"), ("a.pptx", "ppt/presentation.xml")] {
        let error = read("read_file", name, archive(&[(part, &zeros)])).await.unwrap_err();
        assert!(error.contains("unpacks to more than"), "{error}");
    }
}

#[tokio::test]
async fn archives_within_archives_are_opened_to_a_depth() {
    let mut inner = archive(&[("core.txt", b"the core")]);
    for _ in 0..8 {
        inner = archive(&[("next.zip", &inner)]);
    }
    let text = read("read_file", "deep.zip", inner).await.unwrap();
    assert!(
        text.contains("next.zip/next.zip") && text.contains("not shown here") && !text.contains("the core"),
        "{text}"
    );
    let many: Vec<(String, &[u8])> = (0..3_000).map(|at| (at.to_string(), &b""[..])).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|(name, content)| (name.as_str(), *content)).collect();
    let error = read("read_file", "many.zip", archive(&many)).await.unwrap_err();
    assert!(error.contains("more than 2000 files"), "{error}");
}

/// A document whose elements are a million deep, and one whose entities would be a billion letters.
#[tokio::test]
async fn deep_documents_and_entities_end() {
    let deep = format!("<w:document>{}", "<w:p><w:tbl>".repeat(500_000));
    let entities =
        "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;\">]><w:p><w:t>&b;</w:t></w:p>";
    for xml in [deep.as_str(), entities] {
        let text =
            read("read_file", "a.docx", archive(&[("word/document.xml", xml.as_bytes())])).await.unwrap();
        assert!(text.contains("no text") && !text.contains("aaaa"), "{text}");
    }
    let page = "<div><table><td><ul><li>".repeat(200_000);
    assert!(read("read_file", "a.html", page.into_bytes()).await.is_ok());
}

/// One text of 10 MiB that ten thousand cells share: 100 GB if each cell had its own.
#[tokio::test]
async fn a_long_text_in_many_cells_counts_as_it_is_printed() {
    let long = "x".repeat(10 << 20);
    let cells: String = (1..=10_000)
        .map(|row| format!("<row r=\"{row}\"><c r=\"A{row}\" t=\"s\"><v>0</v></c></row>"))
        .collect();
    let book = changed(&fixture("sums.xlsx"), "xl/sharedStrings.xml", |xml| {
        xml.replace(">total<", &format!(">{long}<"))
    });
    let file = changed(&book, "xl/worksheets/sheet1.xml", |xml| {
        let (head, rest) = xml.split_once("<sheetData>").unwrap();
        format!("{head}<sheetData>{cells}</sheetData>{}", rest.split_once("</sheetData>").unwrap().1)
    });
    let text = read("read_excel", "shared.xlsx", file).await.unwrap();
    assert!(
        text.contains("(10000 rows, 1 columns)") && text.contains("[.. more: set `range` to this cell]"),
        "{}",
        &text[..200]
    );
    assert!(text.contains("go on with `start`") && text.len() < 60_000, "{}", text.len());
}
