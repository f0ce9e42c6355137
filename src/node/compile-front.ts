import { cp, mkdir, rename, rm } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { NodeError } from './errors.js';
import type { Java } from './java.js';
import { commonJvmFlags } from './launch.js';
import { lastLines, runProcess } from './run-process.js';

const PATH_SEPARATOR = process.platform === 'win32' ? ';' : ':';

/** Compiles the front and puts the classes into a jar; one JVM does both, so that a Java without the `jar` tool will do. */
const COMPILE_AND_PACK = `
(let [classes (System/getProperty "front.classes")
      jar (System/getProperty "front.jar")
      root (java.io.File. ^String classes)]
  (binding [*compile-path* classes] (compile 'front.main))
  (with-open [out (java.util.zip.ZipOutputStream. (java.io.FileOutputStream. ^String jar))]
    (doseq [^java.io.File f (sort (filter #(.isFile ^java.io.File %) (file-seq root)))]
      (.putNextEntry out (java.util.zip.ZipEntry. (.replace (str (.relativize (.toPath root) (.toPath f))) \\\\ \\/)))
      (java.nio.file.Files/copy (.toPath f) out)
      (.closeEntry out)))
  (shutdown-agents))`;

/**
 * Compiles the Clojure sources of `frontDir` ahead of time, with all they require, and packs them into `jar`.
 * Throws NodeError `build-failed` or `no-space`.
 */
export async function compileFront(
  work: {
    readonly java: Java;
    readonly frontDir: string;
    readonly jars: readonly string[];
    readonly classesDir: string;
    readonly jar: string;
  },
  signal: AbortSignal | undefined,
): Promise<void> {
  const sources = join(work.frontDir, 'src');
  await mkdir(work.classesDir, { recursive: true });
  // What is not Clojure (the logging configuration) goes into the jar as it is.
  await cp(sources, work.classesDir, { recursive: true, filter: (from) => !['.clj', '.cljc'].includes(extname(from)) });
  const args = [
    '-Xmx1g',
    '-XX:+UseSerialGC',
    '-XX:TieredStopAtLevel=1',
    '-Dclojure.main.report=stderr',
    `-Dfront.classes=${work.classesDir}`,
    `-Dfront.jar=${work.jar}`,
    '-Dclojure.compiler.direct-linking=true',
    '-Dclojure.compiler.elide-meta=[:doc,:file,:line,:added]',
    '-cp',
    [work.classesDir, sources, ...work.jars].join(PATH_SEPARATOR),
    'clojure.main',
    '-e',
    COMPILE_AND_PACK,
  ];
  const result = await runProcess(work.java.command, args, { limitMs: 600_000, signal });
  if (result?.code !== 0) throw buildFailure('compiling the front', result?.output ?? 'Java has gone');
  await rm(work.classesDir, { recursive: true, force: true });
}

/**
 * Makes the class-data archive by one warm run of the node. False when this JVM cannot: then the node starts without one, in twice the time.
 * The jars must lie where they will be used, since the archive remembers their paths.
 */
export async function makeArchive(
  work: {
    readonly java: Java;
    readonly jars: readonly string[];
    readonly configFile: string;
    readonly workDir: string;
    readonly archive: string;
  },
  signal: AbortSignal | undefined,
): Promise<boolean> {
  await mkdir(work.workDir, { recursive: true, mode: 0o700 });
  const draft = join(work.workDir, 'front.jsa');
  const args = [
    ...commonJvmFlags(work.java.major),
    '-Xmx1g',
    `-XX:ArchiveClassesAtExit=${draft}`,
    `-Djava.io.tmpdir=${work.workDir}`,
    '-cp',
    work.jars.join(PATH_SEPARATOR),
    'clojure.main',
    '-m',
    'front.main',
    '--config',
    work.configFile,
    '--lock',
    join(work.workDir, 'node.lock'),
    ...(process.platform === 'win32' ? ['--port', '0'] : ['--socket', join(work.workDir, 's')]),
    '--warm',
  ];
  const result = await runProcess(work.java.command, args, { limitMs: 180_000, signal });
  if (result?.code !== 0) throw buildFailure('the first trial run of the node', result?.output ?? 'Java has gone');
  try {
    await rename(draft, work.archive);
    return true;
  } catch {
    return false;
  } finally {
    await rm(work.workDir, { recursive: true, force: true });
  }
}

function buildFailure(what: string, output: string): NodeError {
  const text = lastLines(output, 12);
  if (/No space left on device/.test(output)) {
    return new NodeError(
      'no-space',
      `There is no space left for ${what}:\n${text}\nFree about 200 MB in the cache folder's disk, then try again.`,
    );
  }
  return new NodeError('build-failed', `Building the node failed at ${what}. Java said last:\n${text}`);
}
