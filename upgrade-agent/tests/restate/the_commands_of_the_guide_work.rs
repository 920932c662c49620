//! The commands of `docs/upgrade-agent.md` for several machines, with other ports, since those of the page
//! may be in use.

use std::path::Path;
use std::process::Command;

use crate::server::{Server, free_ports};
use crate::shell::{Folder, agent, finish};

#[test]
#[ignore = "needs the server of Restate: `.ci/restate` fetches it and runs this test"]
fn in_their_order() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/upgrade-agent.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks: Vec<&str> = page.split("\n```sh,restate\n").skip(1).collect();
    assert_eq!(blocks.len(), 1);
    let commands = blocks[0].split("\n```").next().unwrap();

    let restate = tokio::runtime::Runtime::new().unwrap().block_on(Server::start());
    let ports: [u16; 3] = free_ports();
    let mut script = commands.replace("http://127.0.0.1:8080", &restate.ingress);
    for (of_page, port) in ["3030", "9080", "9090"].into_iter().zip(ports) {
        assert!(script.contains(of_page), "{script}");
        script = script.replace(of_page, &port.to_string());
    }
    // Programs that go on would keep the output open.
    script = script.replace(" &\n", " & started=\"$started $!\"\n");
    let folder = Folder::new();
    let program = agent(&folder, &[]);
    let here = Path::new(program.get_program()).parent().unwrap().to_owned();
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("set -e\ntrap 'kill $started' EXIT\n{script}")])
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", format!("{}:{}", here.display(), std::env::var("PATH").unwrap()))
        .env("HOME", folder.path())
        .env("UPGRADE_AGENT_RESTATE_ADMIN", &restate.admin);
    let ran = finish(command, "");
    assert_eq!((ran.code(), ran.err().contains("E_")), (0, false), "{}\n{}", ran.out(), ran.err());
    for told in ["Create experiment 'Hints'", "Experiment 'Hints' was created", "default   2 turns, just now"]
    {
        assert!(ran.out().contains(told), "{told:?} is not in:\n{}\n{}", ran.out(), ran.err());
    }
}
