import { cp, mkdir, rm } from 'node:fs/promises';
import { delimiter, extname, join } from 'node:path';
import { draftOf } from '../process/drafts.js';
import { rename } from '../process/held-files.js';
import { SYSTEM } from '../process/system.js';
import { NodeError, type NodeErrorCode } from './errors.js';
import type { Java } from './java.js';
import { commonJvmFlags, isAheadOfTime } from './launch.js';
import { lastLines, runProcess } from './run-process.js';
import { TIME_LIMITS } from './time-limits.js';

const PROBLEMS: readonly { readonly pattern: RegExp; readonly code: NodeErrorCode }[] = [
  { pattern: /No space left on device|not enough space|Disk quota exceeded/i, code: 'no-space' },
  { pattern: /JAVA_HOME .*not defined correctly|JAVA_HOME .*is not set/i, code: 'no-java' },
  {
    pattern: /Unknown host|UnknownHostException|Name or service not known|Temporary failure in name resolution/i,
    code: 'no-network',
  },
  { pattern: /Network is unreachable|No route to host|Connection (?:refused|reset|timed out)/i, code: 'no-network' },
  { pattern: /connect timed out|Read timed out|Could not transfer artifact|in offline mode/i, code: 'no-network' },
  { pattern: /PKIX path building failed|No plugin found for prefix/i, code: 'no-network' },
];

/** Classifies a failed run of Maven by its output. */
export function classifyMavenFailure(output: string): NodeErrorCode {
  return PROBLEMS.find(({ pattern }) => pattern.test(output))?.code ?? 'build-failed';
}

const NEXT_STEP: Readonly<Partial<Record<NodeErrorCode, string>>> = {
  'no-space': 'Free some space on that disk (about 150 MB are needed), then try again.',
  'no-java': 'Point JAVA_HOME at a JDK of version 17 or later, or unset it.',
  'no-network':
    'The first start needs the network once. Check the connection, proxy and ~/.m2/settings.xml, then try again.',
};

/**
 * Returns the lines of Maven's output that explain a failure, without links to articles. The most
 * important line ends in such a link.
 */
export function essence(output: string): string {
  const errors = output
    .split('\n')
    .map((line) => line.replace(/\s*-> \[Help \d+\]\s*$/, ''))
    .filter(
      (line) =>
        line.includes('ERROR') &&
        !/\[ERROR\]\s*$|\[Help \d+\]|For more information|full stack trace|re-run Maven|-X switch/.test(line),
    );
  return lastLines(errors.length > 0 ? errors.slice(0, 3).join('\n') : output, 3).slice(0, 1_500);
}

/**
 * Copies every jar of `pom` into `targetDir` with Maven. Uses the network only for jars that the
 * user's Maven cache lacks. `kept` is the file that `pom` is a temporary copy of. Error messages
 * name it, so that the user can run Maven by hand.
 * @throws {NodeError} `no-maven`, `no-network`, `no-space`, `no-java` or `build-failed`
 */
export async function copyDependencies(
  { pom, kept }: { readonly pom: string; readonly kept: string },
  targetDir: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const args = [
    '-q',
    '-B',
    '-f',
    pom,
    'dependency:copy-dependencies',
    '-DincludeScope=runtime',
    `-DoutputDirectory=${targetDir}`,
  ];
  const result = await runProcess(`mvn${SYSTEM.scriptEnding}`, args, {
    cwd: join(targetDir, '..'),
    limitMs: TIME_LIMITS.mavenMs,
    signal,
  });
  if (result === undefined) {
    throw new NodeError(
      'no-maven',
      'The first start downloads XTDB with Maven, but there is no `mvn` on the PATH. ' +
        'Install Apache Maven 3.6 or later (maven.apache.org), then try again.',
    );
  }
  if (result.code === 0) return;
  const code = classifyMavenFailure(result.output);
  const nextStep = NEXT_STEP[code] ?? `Run it by hand to see more: mvn -f ${kept} dependency:copy-dependencies`;
  throw new NodeError(
    code,
    `Maven could not fetch the libraries of the node (exit code ${result.code ?? result.signal}):\n` +
      `${essence(result.output)}\n${nextStep}`,
  );
}

/**
 * Compiles the front and packs the classes into a jar. One JVM does both, so a Java without the
 * `jar` tool suffices.
 */
const COMPILE_AND_PACK = `
(let [classes (System/getProperty "front.classes")
      roots (.split (System/getProperty "front.roots") ",")
      jar (System/getProperty "front.jar")
      root (java.io.File. ^String classes)]
  (binding [*compile-path* classes] (run! (comp compile symbol) roots))
  (with-open [out (java.util.zip.ZipOutputStream. (java.io.FileOutputStream. ^String jar))]
    (doseq [^java.io.File f (sort (filter #(.isFile ^java.io.File %) (file-seq root)))]
      (.putNextEntry out (java.util.zip.ZipEntry. (.replace (str (.relativize (.toPath root) (.toPath f))) \\\\ \\/)))
      (java.nio.file.Files/copy (.toPath f) out)
      (.closeEntry out)))
  (shutdown-agents))`;

/** The root namespaces of the front and of its modules for a shared log. */
const ROOTS = ['front.main', 'front.shared.modules'] as const;

/**
 * Compiles the Clojure sources of the front's folders and their dependencies ahead of time, and
 * packs them into `jar`.
 * @throws {NodeError} `build-failed` or `no-space`
 */
export async function compileFront(
  work: {
    readonly java: Java;
    /** The front's folder and, if requested, the one for shared logs. */
    readonly rooms: readonly string[];
    readonly jars: readonly string[];
    readonly classesDir: string;
    readonly jar: string;
  },
  signal: AbortSignal | undefined,
): Promise<void> {
  const sources = work.rooms.map((room) => join(room, 'src'));
  await mkdir(work.classesDir, { recursive: true });
  // Files that are not Clojure, such as the logging configuration, are copied into the jar.
  for (const from of sources) {
    await cp(from, work.classesDir, { recursive: true, filter: (path) => !['.clj', '.cljc'].includes(extname(path)) });
  }
  const args = [
    '-Xmx1g',
    '-XX:+UseSerialGC',
    '-XX:TieredStopAtLevel=1',
    '-Dclojure.main.report=stderr',
    `-Dfront.classes=${work.classesDir}`,
    `-Dfront.jar=${work.jar}`,
    `-Dfront.roots=${ROOTS.slice(0, work.rooms.length).join(',')}`,
    '-Dclojure.compiler.direct-linking=true',
    '-Dclojure.compiler.elide-meta=[:doc,:file,:line,:added]',
    '-cp',
    [work.classesDir, ...sources, ...work.jars].join(delimiter),
    'clojure.main',
    '-e',
    COMPILE_AND_PACK,
  ];
  const result = await runProcess(work.java.command, args, { limitMs: TIME_LIMITS.compileMs, signal });
  if (result?.code !== 0) throw buildFailure('compiling the front', result?.output ?? 'Java has ended');
  await rm(work.classesDir, { recursive: true, force: true });
}

/**
 * Creates the class-data archive in one trial run of the node. Returns false if this JVM cannot
 * create it. The node then starts without an archive, in twice the time. The jars must be at their
 * final paths, because the archive contains the paths.
 */
export async function makeArchive(
  work: {
    readonly java: Java;
    readonly jars: readonly string[];
    readonly configFile: string;
    readonly workDir: string;
    readonly archive: string;
    readonly limitMs: number;
  },
  signal: AbortSignal | undefined,
): Promise<boolean> {
  await mkdir(work.workDir, { recursive: true, mode: 0o700 });
  // The draft must be on the archive's disk to be renamed. A temporary folder is often on another
  // disk.
  const draft = await draftOf(work.archive);
  const args = [
    ...commonJvmFlags(work.java.major),
    '-Xmx1g',
    isAheadOfTime(work.archive) ? `-XX:AOTCacheOutput=${draft}` : `-XX:ArchiveClassesAtExit=${draft}`,
    `-Djava.io.tmpdir=${work.workDir}`,
    '-cp',
    work.jars.join(delimiter),
    'clojure.main',
    '-m',
    'front.main',
    '--config',
    work.configFile,
    '--lock',
    join(work.workDir, 'node.lock'),
    ...(SYSTEM.nodeTransport === 'tcp' ? ['--port', '0'] : ['--socket', join(work.workDir, 's')]),
    '--warm',
  ];
  try {
    const result = await runProcess(work.java.command, args, { limitMs: work.limitMs, signal });
    if (result?.code !== 0) throw buildFailure('the first trial run of the node', result?.output ?? 'Java has ended');
    return await rename(draft, work.archive).then(
      () => true,
      () => false,
    );
  } finally {
    await rm(work.workDir, { recursive: true, force: true });
    await rm(draft, { force: true });
  }
}

function buildFailure(what: string, output: string): NodeError {
  const text = lastLines(output, 12);
  if (/No space left on device/.test(output)) {
    return new NodeError(
      'no-space',
      `There is no space left for ${what}:\n${text}\nFree about 200 MB on the cache folder's disk, then try again.`,
    );
  }
  return new NodeError('build-failed', `Building the node failed at ${what}. Java said last:\n${text}`);
}
