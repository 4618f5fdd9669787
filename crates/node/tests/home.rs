//! Homes: made whole, private, read again when they change, and refused with what to do when something is wrong.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use veil_node::{Home, HomeError, Role, Settings};

fn made() -> (TempDir, PathBuf, Home) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/ann");
    let settings = Settings::new("ann", Role::Party).unwrap();
    let home = Home::create(&path, &settings).unwrap();
    (folder, path, home)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn refused(path: &Path) -> String {
    Home::open(path).unwrap_err().to_string()
}

#[test]
fn a_new_home_is_complete_and_private() {
    let (_folder, path, home) = made();
    assert_eq!(mode(&path), 0o700);
    for entry in fs::read_dir(&path).unwrap() {
        let entry = entry.unwrap();
        let want = if entry.file_type().unwrap().is_dir() {
            0o700
        } else {
            0o600
        };
        assert_eq!(mode(&entry.path()), want, "{:?}", entry.path());
    }
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    let again = Home::open(&path).unwrap();
    assert_eq!(
        again.identity().fingerprint(),
        home.identity().fingerprint()
    );
    assert_eq!(
        *again.store_secret().unwrap(),
        *home.store_secret().unwrap()
    );
    let (_other, _, other) = made();
    assert_ne!(
        *other.store_secret().unwrap(),
        *home.store_secret().unwrap()
    );
    assert!(!format!("{home:?}").contains("PRIVATE"));
}

#[test]
fn what_is_there_already_is_not_overwritten() {
    let (_folder, path, _home) = made();
    let settings = Settings::new("eve", Role::Party).unwrap();
    let error = Home::create(&path, &settings).unwrap_err();
    assert!(matches!(error, HomeError::Exists(_)), "{error}");
    assert!(
        error
            .to_string()
            .ends_with("a home is never overwritten; choose another folder with `--home DIR`"),
        "{error}"
    );
    // An empty folder, such as a volume that was mounted, is fine.
    let empty = path.parent().unwrap().join("empty");
    fs::create_dir(&empty).unwrap();
    assert_eq!(
        Home::create(&empty, &settings).unwrap().settings().name,
        "eve"
    );
    assert_eq!(mode(&empty), 0o700);
}

#[test]
fn every_broken_home_says_what_to_do() {
    let (_folder, path, _home) = made();
    let nowhere = path.parent().unwrap().join("nowhere");
    assert!(refused(&nowhere).contains("is no home: run `veil init NAME --role ROLE`"));

    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    let error = refused(&path);
    assert!(
        error.contains("others may enter it (mode 755); run `chmod 700 "),
        "{error}"
    );
    fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();

    let members = path.join("members.toml");
    let good = fs::read_to_string(&members).unwrap();
    fs::write(&members, "version = 1\n[[member]]\nname = \"a\"\n").unwrap();
    let error = refused(&path);
    assert!(
        error.contains("members.toml:2:1: missing field `role`"),
        "{error}"
    );
    fs::write(&members, "version = 2\n").unwrap();
    assert!(refused(&path).contains("version 2 of this file is unknown"));
    fs::write(&members, good).unwrap();

    fs::set_permissions(path.join("veil.toml"), Permissions::from_mode(0o666)).unwrap();
    assert!(refused(&path).contains("others may change it (mode 666)"));
    fs::set_permissions(path.join("veil.toml"), Permissions::from_mode(0o600)).unwrap();

    fs::set_permissions(path.join("identity.key"), Permissions::from_mode(0o644)).unwrap();
    assert!(refused(&path).contains("others may read this private key"));
    fs::set_permissions(path.join("identity.key"), Permissions::from_mode(0o600)).unwrap();

    Home::open(&path).unwrap();
    fs::write(path.join("store.key"), b"short").unwrap();
    let error = Home::open(&path).unwrap().store_secret().unwrap_err();
    assert!(error.to_string().contains("is 5 bytes long"), "{error}");
}

#[test]
fn a_running_process_sees_what_another_one_changes() {
    let (_folder, path, daemon) = made();
    let command = Home::open(&path).unwrap();
    assert!(!daemon.reload_if_changed().unwrap().members);
    let key = made().2.identity().fingerprint();
    command.pin("bob", Role::Owner, key, None).unwrap();
    assert!(daemon.members().by_name("bob").is_none());
    let changed = daemon.reload_if_changed().unwrap();
    assert!(changed.members && !changed.identity);
    assert_eq!(daemon.members().by_fingerprint(&key).unwrap().name, "bob");
}

#[test]
fn one_writes_at_a_time() {
    let (_folder, path, home) = made();
    let key = |n: u8| veil_link::tls::Fingerprint::from_bytes([n; 32]);
    std::thread::scope(|scope| {
        for n in 0..8 {
            let path = &path;
            scope.spawn(move || {
                let home = Home::open(path).unwrap();
                home.pin(&format!("m{n}"), Role::Owner, key(n), None)
                    .unwrap();
            });
        }
    });
    home.reload_if_changed().unwrap();
    assert_eq!(home.members().iter().count(), 8);
}

#[test]
fn a_revoked_member_is_unknown_until_it_comes_with_another_key() {
    let (_folder, path, home) = made();
    let key = veil_link::tls::Fingerprint::from_bytes([1; 32]);
    home.pin("bob", Role::Owner, key, None).unwrap();
    let daemon = Home::open(&path).unwrap();
    home.revoke("bob", "left the project").unwrap();
    assert!(daemon.reload_if_changed().unwrap().members);
    assert!(daemon.members().by_name("bob").is_none());
    assert!(matches!(
        daemon.members().standing(&key),
        veil_node::Standing::Revoked(member) if member.revoked.as_ref().unwrap().reason == "left the project"
    ));
    let error = home.revoke("bob", "").unwrap_err().to_string();
    assert_eq!(
        error,
        "there is no member `bob`; there are none yet: `veil invite` and `veil join` make them"
    );
}
