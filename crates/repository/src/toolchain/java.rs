//! Java: where a JDK is, and what Maven and Gradle downloaded.

use std::path::{Path, PathBuf};

use super::search::Search;

/// The JDK that the shell names, and the caches of what builds with one.
pub(super) fn of_home(search: &mut Search<'_>) {
    if let Some(home) = search.shell.vars.get("JAVA_HOME").map(PathBuf::from)
        && home.join("bin/java").is_file()
        && search.show(&home)
    {
        search.set("JAVA_HOME", home.display().to_string());
    }
    let runs = |program: &str| search.tools.path.iter().any(|dir| dir.join(program).is_file());
    let runs = |program: &str| runs(program) || Path::new("/usr/bin").join(program).is_file();
    let (maven, gradle) = (runs("mvn"), runs("gradle"));
    let repository = search.shell.home.join(".m2/repository");
    if maven && search.show(&repository) {
        let place = repository.display();
        search.set("MAVEN_OPTS", format!("-Dmaven.repo.local={place}"));
        search.set("MAVEN_ARGS", "--offline");
    }
    let caches = search.shell.dir("GRADLE_USER_HOME", ".gradle").join("caches");
    if gradle && caches.join("modules-2").is_dir() && search.show(&caches) {
        search.set("GRADLE_RO_DEP_CACHE", caches.display().to_string());
    }
}
