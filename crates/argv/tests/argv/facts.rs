//! What is told of a command besides whether it has code in it.

use interlock_argv::StartedCommands;

use crate::argv;

#[test]
fn programs_are_all_that_may_run() {
    for (line, expected, absent) in [
        ("/usr/bin/sudo -n /sbin/reboot", &["sudo", "reboot"][..], &[][..]),
        ("/usr/bin/busybox.static rm -rf /", &["busybox", "rm"], &["-rf"]),
        ("/usr/bin/python3.11 app.py", &["python3.11", "python"], &["app.py"]),
        ("/usr/bin/faketime now mkfs", &["faketime", "mkfs"], &[]),
        ("/usr/bin/ssh web cd\t/x;/sbin/reboot", &["ssh", "reboot"], &[]),
        ("/usr/bin/kubectl exec p -- sudo rm -rf /", &["kubectl", "rm"], &[]),
        ("/usr/bin/docker run reboot", &["docker"], &["reboot"]),
        ("/usr/bin/poetry run reboot", &["poetry", "reboot"], &[]),
        ("/usr/bin/poetry add reboot", &["poetry"], &["reboot"]),
        ("/usr/bin/podman unshare /sbin/reboot", &["podman", "reboot"], &[]),
        ("/usr/bin/echo reboot", &["echo"], &["reboot"]),
        ("/usr/bin/find / -exec rm {} ;", &["find", "rm"], &[]),
        ("/usr/bin/git-push --force", &["git"], &[]),
    ] {
        let argv = argv(line);
        let programs = StartedCommands::of(&argv, |_| Vec::new()).programs();
        assert!(expected.iter().all(|name| programs.contains(*name)), "{line}: {programs:?}");
        assert!(!absent.iter().any(|name| programs.contains(*name)), "{line}: {programs:?}");
    }
}

#[test]
fn words_are_what_else_the_arguments_say() {
    for (line, expected) in [
        ("/bin/rm -rf /bin/.. /srv/x", &["/"][..]),
        ("/bin/rm -rf /srv/x", &[]),
        ("/usr/bin/ssh web rm\t-rf\t//", &["-rf", "/", "//", "rm", "web"]),
        ("/usr/bin/git-push --force", &["push"]),
        ("/usr/bin/docker run /x", &[]),
    ] {
        let argv = argv(line);
        let words: Vec<String> = StartedCommands::of(&argv, |_| Vec::new()).words().into_iter().collect();
        assert_eq!(words, expected, "{line}");
    }
}

#[test]
fn a_program_starts_others_or_does_not() {
    for (line, starts) in [
        ("/usr/bin/env A=1 id", true),
        ("/usr/bin/env", false),
        ("/usr/bin/watch id", true),
        ("/usr/bin/ssh web id", true),
        ("/usr/bin/docker exec c id", true),
        ("/usr/bin/docker ps", false),
        ("/usr/bin/id -u", false),
    ] {
        let argv = argv(line);
        assert_eq!(StartedCommands::of(&argv, |_| Vec::new()).starts_others(), starts, "{line}");
    }
}
