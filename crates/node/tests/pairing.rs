//! Invitations and new keys between homes: what works, and every way in which it must not.

use std::fs;
use std::time::Duration;

use tempfile::TempDir;
use veil_node::{Home, Invitation, Role, Sent, Settings, Standing, Statement};

const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

struct World(TempDir);

impl World {
    fn new() -> Self {
        World(tempfile::tempdir().unwrap())
    }

    fn home(&self, name: &str, role: Role) -> Home {
        let mut settings = Settings::new(name, role).unwrap();
        if role == Role::Party {
            settings = settings.reached_at(&format!("{name}.example:7000"));
        }
        Home::create(&self.0.path().join(name), &settings).unwrap()
    }
}

fn pair(inviter: &Home, joiner: &Home) {
    let settings = joiner.settings();
    let invitation = inviter.invite(&settings.name, settings.role, WEEK).unwrap();
    let (_, answer) = joiner.join(&invitation).unwrap();
    let proved = joiner.identity().fingerprint();
    inviter.accept_join(&answer.to_join(), proved).unwrap();
}

fn said<T, E: std::fmt::Display>(result: Result<T, E>) -> String {
    result.err().expect("refused").to_string()
}

#[test]
fn two_participants_pin_each_other_with_one_string() {
    let world = World::new();
    let [ann, bob] = [
        world.home("ann", Role::Party),
        world.home("bob", Role::Owner),
    ];
    let text = ann.invite("bob", Role::Owner, WEEK).unwrap().to_string();
    assert!(text.starts_with("veil1-") && text.len() < 300, "{text}");
    let Sent::Invitation(invitation) = text.parse().unwrap() else {
        panic!("an invitation");
    };
    let (joined, answer) = bob.join(&invitation).unwrap();
    assert!(!joined.again);
    let known = bob.members();
    let known = known.by_name("ann").unwrap();
    assert_eq!(known.fingerprint, ann.identity().fingerprint());
    assert_eq!(known.address.as_deref(), Some("ann.example:7000"));
    // Ann listens nowhere: the answer goes back as a string.
    let Sent::Answer(answer) = answer.to_string().parse().unwrap() else {
        panic!("an answer");
    };
    ann.accept_answer(&answer).unwrap();
    assert_eq!(
        ann.members().by_name("bob").unwrap().fingerprint,
        bob.identity().fingerprint()
    );
    // Both steps can be repeated, and change nothing.
    assert!(bob.join(&invitation).unwrap().0.again);
    assert!(ann.accept_answer(&answer).unwrap().again);
    assert_eq!(ann.members().all().len(), 1);
    assert!(ann.log().verify(&[]).is_ok() && bob.log().verify(&[]).is_ok());
}

#[test]
fn what_is_kept_of_a_token_is_not_the_token() {
    let world = World::new();
    let ann = world.home("ann", Role::Party);
    let invitation = ann.invite("bob", Role::Owner, WEEK).unwrap();
    let (_, answer) = world.home("bob", Role::Owner).join(&invitation).unwrap();
    let join = serde_json::to_value(answer.to_join()).unwrap();
    let token = join["token"].as_str().unwrap();
    assert_eq!(token.len(), 32);
    let mut kept = String::new();
    for file in ["invitations.toml", "log.jsonl", "members.toml"] {
        kept += &fs::read_to_string(ann.path().join(file)).unwrap();
    }
    assert!(!kept.contains(token));
    let open = fs::read_to_string(ann.path().join("invitations.toml")).unwrap();
    let hash = open
        .split("sha256 = \"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let log = fs::read_to_string(ann.path().join("log.jsonl")).unwrap();
    assert!(!log.contains(hash), "not even its hash is logged");
}

#[test]
fn an_invitation_is_for_one_participant_one_role_one_key_and_once() {
    let world = World::new();
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|name| world.home(name, Role::Owner));
    let invitation = ann.invite("bob", Role::Owner, WEEK).unwrap();
    assert_eq!(
        said(eve.join(&invitation)),
        "the invitation is for `bob`, and this home is `eve`'s: ask for one of your own, or choose the right home with `--home`"
    );
    let other = World::new();
    let party = other.home("bob", Role::Party);
    assert!(
        said(party.join(&invitation))
            .starts_with("the invitation is for `bob` as owner, and it is party")
    );

    let (_, answer) = bob.join(&invitation).unwrap();
    let join = answer.to_join();
    let key = bob.identity().fingerprint();
    assert!(
        said(ann.accept_join(&join, eve.identity().fingerprint()))
            .starts_with("the connection proves the key")
    );
    let mut stolen = join.clone();
    stolen.name = "eve".into();
    stolen.fingerprint = eve.identity().fingerprint().to_string();
    assert_eq!(
        said(ann.accept_join(&stolen, eve.identity().fingerprint())),
        "the invitation is for `bob`, and `eve` used it: ask for one for `eve`"
    );
    assert!(said(eve.accept_answer(&answer)).starts_with("the answer is for `ann`"));
    ann.accept_join(&join, key).unwrap();
    // An adversary that has copied the string comes too late, whatever name it uses.
    stolen.name = "bob".into();
    assert!(
        said(ann.accept_join(&stolen, eve.identity().fingerprint()))
            .starts_with("no open invitation fits")
    );
    assert!(said(ann.invite("bob", Role::Owner, WEEK)).starts_with("`bob` is a member already"));
    assert!(said(ann.invite("ann", Role::Owner, WEEK)).starts_with("`ann` is this home itself"));
    assert!(said(ann.invite(" x", Role::Owner, WEEK)).contains("has blanks"));
}

#[test]
fn a_newer_invitation_replaces_an_older_one_and_time_ends_both() {
    let world = World::new();
    let [ann, bob] = ["ann", "bob"].map(|name| world.home(name, Role::Owner));
    let first = ann.invite("bob", Role::Owner, WEEK).unwrap();
    let (_, answer) = bob.join(&first).unwrap();
    ann.invite("bob", Role::Owner, WEEK).unwrap();
    assert!(said(ann.accept_answer(&answer)).starts_with("no open invitation fits"));

    let mut late = ann.invite("bob", Role::Owner, Duration::ZERO).unwrap();
    std::thread::sleep(Duration::from_millis(2100));
    let error = said(bob.join(&late));
    assert!(error.starts_with("the invitation expired at 2"), "{error}");
    // One whose clock is wrong believes that it is good; the inviter's clock decides.
    late.expires = late.expires.after(WEEK);
    let (_, answer) = bob.join(&late).unwrap();
    let error = said(ann.accept_answer(&answer));
    assert!(error.starts_with("the invitation expired at 2"), "{error}");
}

#[test]
fn a_name_is_not_given_to_another_key_nor_a_key_another_name() {
    let world = World::new();
    let [ann, bob] = ["ann", "bob"].map(|name| world.home(name, Role::Owner));
    pair(&ann, &bob);
    let other = World::new();
    let [imposter, carol] = ["ann", "carol"].map(|name| other.home(name, Role::Owner));
    let invitation = imposter.invite("bob", Role::Owner, WEEK).unwrap();
    let error = said(bob.join(&invitation));
    assert!(
        error.starts_with("`ann` is a member already, with another key (vw1:")
            && error.ends_with(
                "if the old key is lost or stolen, run `veil members revoke ann` and pair again"
            ),
        "{error}"
    );
    // The same key under another name.
    let mut text = fs::read_to_string(ann.path().join("veil.toml")).unwrap();
    text = text.replace("name = \"ann\"", "name = \"anna\"");
    fs::write(ann.path().join("veil.toml"), text).unwrap();
    let anna = Home::open(ann.path()).unwrap();
    ann.revoke("bob", "").unwrap();
    let invitation = anna.invite("bob", Role::Owner, WEEK).unwrap();
    assert!(said(bob.join(&invitation)).starts_with("the key of `anna` is that of member `ann`"));
    pair(&carol, &bob);
}

#[test]
fn a_revoked_key_does_not_come_back_but_its_name_does_with_another() {
    let world = World::new();
    let [ann, bob] = ["ann", "bob"].map(|name| world.home(name, Role::Owner));
    pair(&ann, &bob);
    ann.revoke("bob", "laptop stolen").unwrap();
    let invitation = ann.invite("bob", Role::Owner, WEEK).unwrap();
    let (_, answer) = bob.join(&invitation).unwrap();
    let error = said(ann.accept_answer(&answer));
    assert!(
        error.starts_with("the key of `bob` was revoked here and is not let in again"),
        "{error}"
    );
    let other = World::new();
    let fresh = other.home("bob", Role::Owner);
    let old = bob.identity().fingerprint();
    let (_, answer) = fresh.join(&invitation).unwrap();
    ann.accept_answer(&answer).unwrap();
    let members = ann.members();
    assert_eq!(
        members.by_name("bob").unwrap().fingerprint,
        fresh.identity().fingerprint()
    );
    assert!(matches!(members.standing(&old), Standing::Former(m) if m.name == "bob"));
}

#[test]
fn a_new_key_is_taken_on_the_word_of_the_old_one() {
    let world = World::new();
    let [ann, bob] = ["ann", "bob"].map(|name| world.home(name, Role::Owner));
    pair(&ann, &bob);
    let first = bob.identity().fingerprint();
    let secret = bob.store_secret().unwrap();
    let one = bob.rotate().unwrap();
    let two = bob.rotate().unwrap();
    assert_eq!(bob.statements().unwrap(), [one.clone(), two.clone()]);
    assert_eq!((one.counter, two.counter), (1, 2));
    assert_eq!(two.new_key(), bob.identity().fingerprint());
    assert_eq!(
        Home::open(bob.path()).unwrap().identity().fingerprint(),
        two.new_key()
    );
    assert_eq!(
        *secret,
        *bob.store_secret().unwrap(),
        "stored shares stay readable"
    );
    bob.log().verify(&[]).unwrap();

    // The second cannot be followed before the first.
    assert!(said(ann.accept_rotation(&two)).contains("take the earlier statements of `bob` first"));
    let text = one.to_string();
    let Sent::Statement(sent) = text.parse().unwrap() else {
        panic!("a statement");
    };
    assert!(!ann.accept_rotation(&sent).unwrap().again);
    assert!(ann.accept_rotation(&one).unwrap().again, "brought twice");
    ann.accept_rotation(&two).unwrap();
    let members = ann.members();
    assert_eq!(members.by_name("bob").unwrap().fingerprint, two.new_key());
    for former in [first, one.new_key()] {
        assert!(matches!(members.standing(&former), Standing::Former(_)));
    }
    assert!(said(ann.accept_rotation(&one)).contains("was replaced by another one here"));
}

#[test]
fn statements_of_others_and_of_revoked_keys_are_not_followed() {
    let world = World::new();
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|name| world.home(name, Role::Owner));
    pair(&ann, &bob);
    pair(&ann, &eve);
    // Eve signs with her own keys and calls herself Bob.
    let path = eve.path().join("veil.toml");
    let text = fs::read_to_string(&path)
        .unwrap()
        .replace("name = \"eve\"", "name = \"bob\"");
    fs::write(&path, text).unwrap();
    let statement = Home::open(eve.path()).unwrap().rotate().unwrap();
    let error = said(ann.accept_rotation(&statement));
    assert!(
        error.starts_with("the statement is of `bob`, and its old key is that of member `eve`"),
        "{error}"
    );

    let good = bob.rotate().unwrap();
    ann.revoke("bob", "").unwrap();
    assert!(said(ann.accept_rotation(&good)).contains("was revoked here: it is not followed"));
    let stranger = World::new().home("bob", Role::Owner).rotate().unwrap();
    assert!(said(ann.accept_rotation(&stranger)).contains("which no member has here"));
}

#[test]
fn a_rotation_that_was_interrupted_is_finished_not_begun_again() {
    let world = World::new();
    let bob = world.home("bob", Role::Owner);
    let old = fs::read(bob.path().join("identity.key")).unwrap();
    let log = fs::read(bob.path().join("log.jsonl")).unwrap();
    let head = fs::read(bob.path().join("log.head")).unwrap();
    let statement = bob.rotate().unwrap();
    // As if the machine had stopped before the new key was in its place, with and without the entry of the log.
    for logged in [true, false] {
        fs::rename(
            bob.path().join("identity.key"),
            bob.path().join("identity.key.next"),
        )
        .unwrap();
        fs::write(bob.path().join("identity.key"), &old).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(bob.path().join("identity.key"), mode).unwrap();
        if !logged {
            fs::write(bob.path().join("log.jsonl"), &log).unwrap();
            fs::write(bob.path().join("log.head"), &head).unwrap();
        }
        let again = Home::open(bob.path()).unwrap();
        if logged {
            assert_eq!(again.rotate().unwrap(), statement);
        } else {
            again.invite("ann", Role::Owner, WEEK).unwrap();
        }
        assert_eq!(again.identity().fingerprint(), statement.new_key());
        again.log().verify(&[]).unwrap();
    }
}

#[test]
fn strings_for_another_purpose_say_what_they_are() {
    let world = World::new();
    let bob = world.home("bob", Role::Owner);
    let text = bob.rotate().unwrap().to_string();
    assert_eq!(
        said(text.parse::<Invitation>()),
        "this is a statement of a new key, and an invitation is needed here"
    );
    assert!(text.parse::<Statement>().is_ok());
    assert!(said("vw1:00".parse::<Sent>()).starts_with("this is no string of `veil`"));
}
