//! Files: the current folder first, then the downloads of the question, and nothing else, whatever a name is
//! made of.

use std::fs;

use gaia_agent::tools::Folders;
use serde_json::json;

use crate::common::Folder;
use crate::support::{Scene, call};

fn folders(folder: &Folder) -> Folders {
    fs::create_dir_all(folder.file("here")).unwrap();
    Folders::open(Some(&folder.file("here")), &folder.file("downloads")).unwrap()
}

fn read(folders: &Folders, name: &str) -> Result<String, String> {
    let found = folders.find(name).map_err(|error| error.to_string())?;
    found.read(1000).map(|bytes| String::from_utf8(bytes).unwrap()).map_err(|error| error.to_string())
}

#[test]
fn a_file_is_looked_for_here_and_then_in_the_downloads_and_never_made_up() {
    let folder = Folder::new();
    let folders = folders(&folder);
    folder.write("here/both.txt", "here");
    folder.write("here/sub/deep.txt", "deep");
    folder.write("downloads/both.txt", "downloads");
    folder.write("downloads/only.txt", "only");
    assert_eq!(read(&folders, "both.txt").unwrap(), "here");
    assert_eq!(read(&folders, "downloads/both.txt").unwrap(), "downloads");
    assert_eq!(read(&folders, "./only.txt").unwrap(), "only");
    assert_eq!(read(&folders, "sub/deep.txt").unwrap(), "deep");
    assert_eq!(folders.find("only.txt").unwrap().path, "downloads/only.txt");
    let error = read(&folders, "onyl.txt").unwrap_err();
    assert!(error.contains("there is no file `onyl.txt`; did you mean `downloads/only.txt`?"), "{error}");
    let error = read(&folders, "data.xlsx").unwrap_err();
    assert!(error.contains("`list_files` shows those that exist"), "{error}");
    assert_eq!(
        folders.list(),
        [
            "both.txt (4 bytes)",
            "sub/deep.txt (4 bytes)",
            "downloads/both.txt (9 bytes)",
            "downloads/only.txt (4 bytes)"
        ]
    );
}

#[test]
fn the_questions_own_file_goes_before_one_of_its_name_here() {
    let folder = Folder::new();
    let folders = folders(&folder).own(Some("data.csv"));
    for (name, content) in
        [("here/data.csv", "here"), ("downloads/data.csv", "own"), ("here/other.csv", "other")]
    {
        folder.write(name, content);
    }
    folder.write("downloads/other.csv", "downloaded");
    assert_eq!(read(&folders, "data.csv").unwrap(), "own");
    assert_eq!(read(&folders, "downloads/data.csv").unwrap(), "own");
    assert_eq!(read(&folders, "./data.csv").unwrap(), "here");
    assert_eq!(read(&folders, "other.csv").unwrap(), "other");
    let listed = folders.list();
    assert_eq!(listed[..2], ["./data.csv (4 bytes)", "other.csv (5 bytes)"]);
}

#[test]
fn no_name_leads_out_of_the_two_folders() {
    let folder = Folder::new();
    let folders = folders(&folder);
    let secret = folder.write("secret.txt", "secret");
    folder.write("here/.env", "OPENAI_API_KEY=sk-secret");
    folder.write("here/.git/config", "secret");
    folder.write("here/sub/plain.txt", "plain");
    #[cfg(unix)]
    for (link, to) in
        [("here/out.txt", "../secret.txt"), ("here/up", ".."), ("downloads/out.txt", "../secret.txt")]
    {
        std::os::unix::fs::symlink(to, folder.file(link)).unwrap();
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink(&secret, folder.file("here/absolute.txt")).unwrap();
    let absolute = secret.to_str().unwrap().to_owned();
    for name in [
        "../secret.txt",
        "sub/../../secret.txt",
        "downloads/../../secret.txt",
        "..",
        "/",
        "",
        " ",
        ".",
        "./",
        absolute.as_str(),
        "/etc/passwd",
        "//etc/passwd",
        "out.txt",
        "downloads/out.txt",
        "up/secret.txt",
        "absolute.txt",
        ".env",
        "./.env",
        ".git/config",
        "sub/.././.env",
        "sub\\..\\..\\secret.txt",
        "~/secret.txt",
        "file:///etc/passwd",
        "secret\0.txt",
        "downloads",
        "sub",
        "sub/plain.txt/x",
    ] {
        let found = read(&folders, name);
        assert!(found.is_err(), "{name:?}: {found:?}");
    }
    let listed = folders.list().join("\n");
    assert!(!listed.contains(".env") && !listed.contains("config"), "{listed}");
    let long = "a/".repeat(5_000) + "b";
    assert!(read(&folders, &long).is_err());
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_are_no_files_and_do_not_wait() {
    let folder = Folder::new();
    let folders = folders(&folder);
    let made = std::process::Command::new("mkfifo").arg(folder.file("here/pipe")).status().unwrap();
    assert!(made.success());
    std::os::unix::net::UnixListener::bind(folder.file("here/socket")).unwrap();
    for name in ["pipe", "socket"] {
        assert!(read(&folders, name).unwrap_err().contains("it is no file"), "{name}");
    }
}

#[test]
fn a_long_file_is_not_read_and_many_are_not_all_listed() {
    let folder = Folder::new();
    let folders = folders(&folder);
    folder.write("here/long.txt", "x".repeat(1001));
    assert!(read(&folders, "long.txt").unwrap_err().contains("longer than 1000 bytes"));
    for at in 0..300 {
        folder.write(&format!("here/{at:03}.txt"), "");
    }
    let listed = folders.list();
    assert!(
        listed.len() < 420 && listed.iter().any(|line| line.contains("only the first 200")),
        "{}",
        listed.len()
    );
}

#[test]
fn what_is_stored_is_whole_and_has_a_plain_name() {
    let folder = Folder::new();
    let folders = folders(&folder);
    assert_eq!(folders.store("a.txt", b"one").unwrap(), "downloads/a.txt");
    assert_eq!(folders.store("a.txt", b"two").unwrap(), "downloads/a.txt");
    assert_eq!(fs::read_to_string(folder.file("downloads/a.txt")).unwrap(), "two");
    for name in ["../a.txt", "/a.txt", "sub/a.txt", ".a", "", "."] {
        assert!(folders.store(name, b"x").is_err(), "{name}");
    }
    assert_eq!(fs::read_dir(folder.file("downloads")).unwrap().count(), 1);
}

#[tokio::test]
async fn the_tools_show_what_exists_and_explain_what_does_not() {
    let scene = Scene::new().await;
    scene.folder.write("here/note.txt", "line one\nline two");
    scene.folder.write("downloads/call/data.txt", "x");
    // The files of other questions are not seen.
    scene.folder.write("downloads/other/hidden.txt", "x");
    let listed = call(&scene, "list_files", json!({})).await.unwrap();
    assert_eq!(
        listed,
        "note.txt (17 bytes; a text: `read_file` shows its text)\ndownloads/data.txt (1 bytes; a text: `read_file` shows its text)"
    );
    assert_eq!(call(&scene, "read_file", json!({ "path": "note.txt" })).await.unwrap(), "line one\nline two");
    assert_eq!(
        call(&scene, "read_file", json!({ "path": "note.txt", "start": 12 })).await.unwrap(),
        "e two\n[characters 12 to 17: the end of the text]"
    );
    for path in ["../hidden.txt", "downloads/../other/hidden.txt", "hidden.txt", "/etc/passwd"] {
        assert!(call(&scene, "read_file", json!({ "path": path })).await.is_err(), "{path}");
    }
}
