//! Ways out of the confinement of Python, each tried in every sandbox of this machine, and what code can do
//! within it. A way has a control where it is harmless: it works for code that is not confined.
#![cfg(target_os = "linux")]

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::time::Duration;

use agentgraph::MemorySaver;
use agentgraph_llm::{Reply, ScriptedModel};
use gaia_agent::agent::Task;
use gaia_agent::python::{Limit, Python, PythonError, PythonSettings, Sandbox};
use serde_json::json;

use crate::common::Folder;
use crate::support::{Scene, attach, python_in, results, sandboxes};

const UNCONFINED: Sandbox = Sandbox { is_confined: false, has_namespaces: false };

/// Whether the way leads out where nothing confines the code; `Unsafe` if that is not tried.
#[derive(Clone, Copy, PartialEq)]
enum Control {
    Out,
    Unsafe,
}
use Control::{Out, Unsafe};

/// The body of a function that returns whether it got out. `FILE` is a file of its own outside, with the
/// text `secret`; `OUT` is that file's folder.
const WAYS: [(&str, Control, &str); 49] = [
    ("up", Out, "return read('../../../up.txt')"),
    ("absolute", Out, "return read(FILE)"),
    ("link to the root", Out, "os.symlink('/', 'root'); return read('root' + FILE)"),
    ("link to a folder", Out, "os.symlink(OUT, 'out'); return read('out/link to a folder.txt')"),
    ("root of proc", Out, "return read('/proc/self/root' + FILE)"),
    ("working directory of proc", Out, "return read(f'/proc/self/cwd/../../../{NAME}.txt')"),
    ("change of directory", Out, "os.chdir(OUT); return read(FILE)"),
    ("variables of the parent", Out, "return len(open(f'/proc/{PID}/environ', 'rb').read()) > 0"),
    ("memory of the parent", Out, "return os.close(os.open(f'/proc/{PID}/mem', os.O_RDONLY)) is None"),
    ("own variables", Unsafe, "return 'PATH' in os.environ or 'HOME' in os.environ"),
    ("home", Out, "return os.listdir(HOME) is not None"),
    ("data folder", Out, "return 'agent_cache.json' in os.listdir(OUT)"),
    ("cache", Out, "return read(OUT + '/agent_cache.json')"),
    ("files of another question", Out, "return read(OUT + '/downloads/other/answer.txt')"),
    ("temporary files", Out, "return os.listdir('/tmp') is not None"),
    ("users", Out, "return 'root' in open('/etc/passwd').read()"),
    ("devices", Out, "return open('/dev/null', 'w').close() is None"),
    ("system", Out, "return os.listdir('/sys') is not None"),
    ("new file", Out, "open(OUT + '/new.txt', 'w').close(); return os.path.exists(OUT + '/new.txt')"),
    ("write", Out, "return open(FILE, 'a').write('more') > 0"),
    ("truncate", Out, "os.truncate(FILE, 0); return os.stat(FILE).st_size == 0"),
    ("truncate on open", Out, "os.open(FILE, os.O_RDONLY | os.O_TRUNC); return os.stat(FILE).st_size == 0"),
    ("remove", Out, "os.remove(FILE); return not os.path.exists(FILE)"),
    ("mode", Out, "os.chmod(FILE, 0o777); return os.stat(FILE).st_mode & 0o777 == 0o777"),
    ("time", Out, "os.utime(FILE, (1, 1)); return os.stat(FILE).st_mtime == 1"),
    ("attribute", Unsafe, "os.setxattr(FILE, 'user.x', b'1'); return True"),
    ("link in", Out, "os.link(FILE, 'linked'); return read('linked')"),
    ("link out", Out, "open('a', 'w').close(); os.link('a', OUT + '/a'); return os.path.exists(OUT + '/a')"),
    ("move in", Out, "os.rename(FILE, 'moved'); return read('moved')"),
    (
        "move out",
        Out,
        "open('b', 'w').close(); os.rename('b', OUT + '/b'); return os.path.exists(OUT + '/b')",
    ),
    ("library", Unsafe, "open(os.path.dirname(os.__file__) + '/gaia_probe.py', 'w'); return True"),
    ("interpreter", Unsafe, "open(sys.executable, 'r+b'); return True"),
    ("shell", Out, "return subprocess.run(['/bin/sh', '-c', 'exit 7']).returncode == 7"),
    (
        "own program",
        Out,
        "open('run', 'w').write('#!/bin/sh\\nexit 7'); os.chmod('run', 0o755); return subprocess.run(['./run']).returncode == 7",
    ),
    ("signal", Out, "return os.kill(PID, 0) is None"),
    ("signal to the helper", Unsafe, "return os.getppid() > 0 and os.kill(os.getppid(), 9) is None"),
    ("trace", Unsafe, "return ctypes.CDLL(None).ptrace(0x4206, PID, 0, 0) == 0"),
    (
        "priority",
        Out,
        "os.setpriority(os.PRIO_PROCESS, PID, os.getpriority(os.PRIO_PROCESS, PID)); return True",
    ),
    (
        "limits of the parent",
        Out,
        "r = resource; r.prlimit(PID, r.RLIMIT_CORE, r.prlimit(PID, r.RLIMIT_CORE)); return True",
    ),
    ("own limits", Unsafe, "resource.setrlimit(resource.RLIMIT_NOFILE, (4000, 4000)); return True"),
    ("TCP", Out, "return socket.create_connection(('127.0.0.1', TCP), timeout=5) is not None"),
    (
        "UDP",
        Out,
        "return socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', UDP)) > 0",
    ),
    ("abstract socket", Out, "return socket.socket(socket.AF_UNIX).connect('\\0' + ABSTRACT) is None"),
    ("socket with a path", Out, "return socket.socket(socket.AF_UNIX).connect(OUT + '/s') is None"),
    ("hidden memory", Out, "return os.close(os.memfd_create('x')) is None"),
    (
        "hidden descriptors",
        Out,
        "return ctypes.CDLL(None).prctl(ctypes.c_long(4 | 1 << 32), 0, 0, 0, 0) == 0",
    ),
    ("keyring", Unsafe, "return ctypes.CDLL(None).syscall(250, 0, -3, 0) > 0"),
    ("capabilities", Unsafe, "return ctypes.CDLL(None).syscall(56, 0x10000000 | 17, 0, 0, 0, 0) >= 0"),
    ("namespaces", Unsafe, "return ctypes.CDLL(None).unshare(0x10000000) == 0"),
];

/// Tries all ways in one session, and returns those that led out, and what became of their files.
async fn ways_out(sandbox: Sandbox) -> Vec<&'static str> {
    // Sockets have short paths.
    let folder = Folder::new();
    let short = std::env::temp_dir().join(format!("gaia-{}", uuid::Uuid::new_v4()));
    std::os::unix::fs::symlink(folder.path(), &short).unwrap();
    folder.write("agent_cache.json", "secret");
    folder.write("downloads/other/answer.txt", "secret");
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let name = uuid::Uuid::new_v4().to_string();
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let _socket = UnixListener::bind(short.join("s")).unwrap();
    let mut settings = python_in(&folder).with_sandbox(sandbox);
    settings.unconfined = !sandbox.is_confined;
    let session = Python::new(settings);
    let prelude = format!(
        "import ctypes, os, resource, socket, subprocess, sys\nOUT = {:?}\nPID, TCP, UDP = {}, {}, {}\nABSTRACT = {name:?}\nHOME = {:?}\n\
         def read(path): return 'secret' in open(path).read()",
        folder.path(),
        std::process::id(),
        tcp.local_addr().unwrap().port(),
        udp.local_addr().unwrap().port(),
        std::env::var("HOME").unwrap_or("/root".to_owned()),
    );
    session.run(&prelude).await.unwrap();
    let mut out = Vec::new();
    for (way, control, code) in WAYS {
        if !sandbox.is_confined && control == Unsafe {
            continue;
        }
        let file = folder.write(&format!("{way}.txt"), "secret");
        let before = std::fs::metadata(&file).unwrap();
        let code = format!(
            "NAME, FILE, here = {way:?}, {file:?}, os.getcwd()\ndef attempt():\n    {code}\ntry: got = attempt()\nexcept Exception as error: got = \
             False\nos.chdir(here)\ngot"
        );
        let ran = session.run(&code).await.unwrap_or_else(|error| panic!("{way}: {error}"));
        let is_changed = !std::fs::metadata(&file).is_ok_and(|after| {
            let facts = |about: &std::fs::Metadata| (about.size(), about.mode(), about.mtime());
            facts(&after) == facts(&before)
        });
        match ran.value.as_deref() {
            Some("True") => out.push(way),
            Some("False") if !is_changed => {}
            other => panic!("{way}: {other:?} {ran:?}, changed: {is_changed}"),
        }
    }
    std::fs::remove_file(short).unwrap();
    out
}

#[tokio::test]
async fn no_way_leads_out_of_any_sandbox_and_each_control_does() {
    for sandbox in sandboxes().await {
        assert_eq!(ways_out(sandbox).await, Vec::<&str>::new(), "{sandbox:?}");
    }
    let controls: Vec<_> = WAYS.iter().filter(|way| way.1 == Out).map(|way| way.0).collect();
    assert_eq!(ways_out(UNCONFINED).await, controls);
}

/// The processes that work below a folder.
fn processes_in(folder: &Path) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let folders = entries.filter_map(|entry| std::fs::read_link(entry.path().join("cwd")).ok());
    folders.filter(|cwd| cwd.starts_with(folder)).count()
}

/// A process that was killed is still there for a moment.
async fn all_end(folder: &Path) {
    let ended = async {
        while processes_in(folder) > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended).await.expect("all processes end");
}

const DAEMON: &str = "import os, time\ndef daemon(work):\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0:\n            \
                      work()\n            time.sleep(600)\n        os._exit(0)\n";

#[tokio::test]
async fn processes_memory_and_disk_have_limits_whatever_they_are_taken_by() {
    let forever = "\nwhile True: time.sleep(1)";
    let table = [
        // 512 processes. Without a bound a busy machine, where the watch comes late, would have thousands.
        (Limit::Processes, "for _ in range(9): os.fork()"),
        (
            Limit::Processes,
            "import threading\nthreading.stack_size(1 << 16)\nfor _ in range(200): threading.Thread(target=time.sleep, args=[600]).start()",
        ),
        (Limit::Memory, "for _ in range(4):\n    if os.fork() == 0: x = b'x' * (120 << 20); time.sleep(600)"),
        (Limit::Disk, "for n in range(40): open(f'f{n}', 'wb').write(b'x' * (1 << 20))"),
        (
            Limit::Disk,
            "kept = []\nfor n in range(40):\n    kept.append(open('f', 'wb', 0)); kept[n].write(b'x' * (1 << 20)); os.remove('f')",
        ),
        (Limit::Disk, "for n in range(1000): os.mkdir(f'd{n}')"),
        (Limit::Disk, "for n in range(20): os.mkdir('d' * 250); os.chdir('d' * 250)"),
        (Limit::Disk, "import mmap\nkept = [mmap.mmap(-1, 1 << 20) for n in range(40)]"),
        (
            Limit::Disk,
            "def work():\n    for n in range(40): open(f'f{n}', 'wb').write(b'x' * (1 << 20))\ndaemon(work)",
        ),
    ];
    for sandbox in sandboxes().await {
        // Without a namespace for processes there is but one.
        let is_possible =
            |code: &str| sandbox.has_namespaces || !code.contains("fork") && !code.contains("daemon");
        for (limit, code) in table.into_iter().filter(|row| is_possible(row.1)) {
            let folder = Folder::new();
            let mut settings = python_in(&folder).with_sandbox(sandbox);
            (settings.memory, settings.disk, settings.processes) = (300 << 20, 8 << 20, 8);
            let session = Python::new(settings);
            let ended = session.run(&format!("{DAEMON}{code}{forever}")).await.unwrap_err();
            assert_eq!(ended, PythonError::TooMuch(limit), "{sandbox:?} {code}");
            all_end(folder.path()).await;
            assert_eq!(
                session.run("1").await.unwrap().value.as_deref(),
                Some("1"),
                "the next session begins"
            );
        }
    }
}

#[tokio::test]
async fn a_daemon_is_watched_between_calls_and_ends_with_the_session() {
    for sandbox in sandboxes().await {
        if !sandbox.has_namespaces {
            continue;
        }
        let folder = Folder::new();
        let mut settings = python_in(&folder).with_sandbox(sandbox);
        settings.disk = 8 << 20;
        let session = Python::new(settings.clone());
        let code = format!(
            "{DAEMON}def work():\n    while not os.path.exists('go'): time.sleep(0.01)\n    for n in range(40): open(f'f{{n}}', 'wb').write(b'x' * (1 \
             << 20))\ndaemon(work)\nos.wait() and None"
        );
        session.run(&code).await.unwrap();
        session.run("open('go', 'w').close()").await.ok();
        let ended = loop {
            if let Err(error) = session.run("1").await {
                break error;
            }
        };
        assert_eq!(ended, PythonError::TooMuch(Limit::Disk));

        settings.timeout = Duration::from_secs(2);
        for last in ["1", "time.sleep(600)", "os._exit(0)"] {
            let session = Python::new(settings.clone());
            session.run(&format!("{DAEMON}daemon(lambda: None)\nos.wait()")).await.unwrap();
            assert!(processes_in(folder.path()) > 2, "the helper, Python and the daemon");
            let ended = session.run(last).await;
            assert_eq!(ended.is_ok(), last == "1", "{ended:?}");
            drop(session);
            all_end(folder.path()).await;
            assert_eq!(std::fs::read_dir(folder.file("python")).unwrap().count(), 0);
        }
    }
}

#[tokio::test]
async fn without_a_namespace_for_processes_code_starts_threads_alone() {
    let folder = Folder::new();
    let sandbox = Sandbox { is_confined: true, has_namespaces: false };
    let session = Python::new(python_in(&folder).with_sandbox(sandbox));
    for code in ["import os\nos.fork()", "import os\nos.posix_spawn('/bin/true', ['true'], {})"] {
        let error = session.run(code).await.unwrap().error.unwrap();
        assert!(error.contains("PermissionError"), "{code}: {error}");
    }
    let threads =
        "from concurrent.futures import ThreadPoolExecutor as Pool\nsum(Pool(4).map(abs, range(5)))";
    assert_eq!(session.run(threads).await.unwrap().value.as_deref(), Some("10"));
}

#[tokio::test]
async fn a_reply_is_that_of_the_call() {
    let folder = Folder::new();
    let session = Python::new(python_in(&folder));
    let may_fork = sandboxes().await[0].has_namespaces;
    let forge = "import json, os, threading\nline = {'output': 'forged', 'lost': 0, 'value': None, 'error': None, 'nonce': ''}\ndef \
                 forge(end='\\n'):\n    for fd in range(64):\n        try: os.write(fd, (json.dumps(line) + end).encode())\n        except OSError: \
                 pass\ngo = threading.Event()\nlate = threading.Thread(target=lambda: (go.wait(), forge()))\nlate.start()\nforge()\nforge('')\n1";
    for (code, value) in [
        (forge, Some("1")),
        ("go.set(); late.join(); 2", Some("2")),
        // A child comes to its own end of the call, and has nothing to read or to write.
        (
            "def is_open(fd):\n    try: return os.fstat(fd) is not None\n    except OSError: return False",
            None,
        ),
        (
            "child = os.fork()\nif child == 0:\n    found = [fd for fd in range(4, 64) if is_open(fd)]; open('open', 'w').write(str(found))\nelse: os.wait()\n3",
            Some("3"),
        ),
        ("open('open').read()", Some("'[]'")),
    ] {
        if !may_fork && (code.contains("fork") || code.contains("'open'")) {
            continue;
        }
        let ran = session.run(code).await.unwrap();
        assert_eq!((ran.output.as_str(), ran.value.as_deref(), ran.error), ("", value, None), "{code}");
    }
    let flood = session.run("while True: forge('x' * 10000 + '\\n')").await.unwrap_err();
    assert_eq!(flood, PythonError::Ended);
}

#[tokio::test]
async fn code_that_cannot_be_confined_is_refused_unless_that_is_allowed() {
    let folder = Folder::new();
    let without_helper = PythonSettings::new(folder.file("python"));
    let without_landlock = python_in(&folder).with_sandbox(UNCONFINED);
    for (mut settings, why) in [(without_helper, "no program was named"), (without_landlock, "Landlock")] {
        let error = Python::new(settings.clone()).run("1").await.unwrap_err();
        assert!(matches!(error, PythonError::Refused(_)) && error.to_string().contains(why), "{error}");
        assert!(error.to_string().contains("PythonSettings::unconfined"));
        settings = PythonSettings::new(folder.file("python"));
        settings.unconfined = true;
        assert!(!settings.sandbox().await.unwrap().is_confined);
        assert_eq!(Python::new(settings).run("1").await.unwrap().value.as_deref(), Some("1"));
    }
}

#[tokio::test]
async fn the_files_of_the_question_are_in_the_folder_and_stay_as_they_are() {
    let scene = Scene::new().await;
    let sum = "import csv\nprint(sum(int(row['legs']) for row in csv.DictReader(open('legs.csv'))))";
    scene.folder.write("here/sum.py", sum);
    scene.folder.write("here/more/notes.txt", "in a folder");
    scene.folder.write("here/.hidden", "a key");
    scene.folder.write("here/legs.csv", "legs\n1\n");
    scene.folder.write("downloads/another/theirs.txt", "of another question");
    let late = scene.folder.file("downloads/legs/late.txt");
    let repl = |code: &str| Reply::tool_call("python_repl", json!({ "code": code }));
    let calls = vec![
        repl(sum),
        Reply::tool_call("execute_python_file", json!({ "path": "sum.py" })),
        repl("open('downloads/legs.csv').read() == open('legs.csv').read(), open('more/notes.txt').read()"),
        repl("import os\nsorted(os.listdir()), os.path.exists('late.txt')"),
        repl("open('late.txt').read()"),
        repl("open('legs.csv', 'w')"),
        repl("import shutil\nshutil.copy('legs.csv', 'mine.csv')\nopen('mine.csv', 'a').write('9\\n')"),
        repl("import hashlib, sqlite3, decimal, datetime, zoneinfo\nzoneinfo.ZoneInfo('Europe/Paris').key"),
        Reply::text("FINAL ANSWER: 1"),
    ];
    let calls = std::sync::Mutex::new(calls.into_iter().enumerate());
    let model = ScriptedModel::from_fn(move |_| {
        let (at, call) = calls.lock().unwrap().next().unwrap();
        if at == 4 {
            std::fs::write(&late, "downloaded").unwrap();
        }
        call
    });
    let agent = scene.builder(model).python(scene.python()).checkpointer(MemorySaver::new()).build().unwrap();
    let mut task = Task::ask("How many legs?");
    task.question.task_id = "legs".into();
    agent.solve("t", &attach(&agent, task, "legs.csv", "name,legs\nowl,2\ncat,4\n")).await.unwrap();
    let results = results(&agent, "t").await;
    let texts: Vec<_> = results.iter().map(|(text, _)| text.trim()).collect();
    assert_eq!(texts[..3], ["6", "6", "(True, 'in a folder')"], "the question's own file goes first");
    assert_eq!(texts[3], "(['downloads', 'legs.csv', 'more', 'sum.py'], False)");
    assert_eq!(texts[4], "'downloaded'");
    assert!(results[5].1 && texts[5].contains("PermissionError"), "{}", texts[5]);
    assert_eq!(texts[6..], ["2", "'Europe/Paris'"]);
    let system = agent.graph().state("t").await.unwrap().unwrap().values.messages[0].text();
    assert!(system.contains("Python code runs in Python 3.") && system.contains("read-only"), "{system}");
}

#[tokio::test]
async fn files_without_room_are_named_and_the_questions_own_has_room_first() {
    let scene = Scene::new().await;
    let sparse = std::fs::File::create(scene.folder.write("here/a-large.bin", "")).unwrap();
    sparse.set_len(60 << 20).unwrap();
    let code = Reply::tool_call("python_repl", json!({ "code": "len(open('z.bin', 'rb').read()) >> 20" }));
    let model = ScriptedModel::new([code, Reply::text("FINAL ANSWER: 8")]);
    let agent = scene.builder(model).python(scene.python()).checkpointer(MemorySaver::new()).build().unwrap();
    let task = attach(&agent, Task::ask("How large?"), "z.bin", vec![0; 8 << 20]);
    agent.solve("t", &task).await.unwrap();
    let text = results(&agent, "t").await.pop().unwrap().0;
    assert_eq!(text, "8\n[not in the folder, since it is too large: a-large.bin]");
}
