import { join } from 'node:path';
import { z } from 'zod';
import { NodeError } from './errors.js';
import type { NodeProfile } from './state-file.js';

const planSchema = z.object({
  dataDir: z.string(),
  profile: z.enum(['memory', 'rocksdb']),
  java: z.string(),
  javaMajor: z.int(),
  jars: z.array(z.string()).min(1),
  /** The class-data archive; null when the JVM could not make one. */
  archive: z.string().nullable(),
  configFile: z.string(),
  /** Where the socket goes; null asks for TCP on the loopback address. */
  socketPath: z.string().nullable(),
  /** File with the bearer token, with TCP only. */
  tokenFile: z.string().nullable(),
  /** 0 is never. */
  idleExitSeconds: z.int().nonnegative(),
  heapMegabytes: z.int().positive(),
});

/** Everything that the supervisor needs for starting the JVM, again and again if it must. Plain data: it travels on a command line. */
export type LaunchPlan = Readonly<z.infer<typeof planSchema>>;

/** Reads a plan from the command line of a supervisor. Throws NodeError `start-failed` when the text is none. */
export function parseLaunchPlan(text: string): LaunchPlan {
  try {
    return planSchema.parse(JSON.parse(text));
  } catch (cause) {
    throw new NodeError('start-failed', 'The plan of this supervisor cannot be read. Start nodes with: palimpsest node start', { cause });
  }
}

/** How much heap each profile may take, in megabytes, unless told otherwise. */
export const DEFAULT_HEAP_MEGABYTES: Readonly<Record<NodeProfile, number>> = { memory: 1024, rocksdb: 1024 };

const PROFILE_FLAGS: Readonly<Record<NodeProfile, readonly string[]>> = {
  // Short lives: the first compiler alone starts sooner and leaves the other cores to the tests.
  memory: ['-XX:TieredStopAtLevel=1'],
  rocksdb: [],
};

/** Flags that every JVM of ours gets, the one that makes the archive included. */
export function commonJvmFlags(javaMajor: number): readonly string[] {
  return [
    '-XX:+UseSerialGC',
    '-Duser.timezone=UTC',
    '-Dfile.encoding=UTF-8',
    '-Djava.awt.headless=true',
    // Reasons go to the log, not into a file of their own.
    '-Dclojure.main.report=stderr',
    // Java 24 and later warn about native code that was not announced.
    ...(javaMajor >= 24 ? ['--enable-native-access=ALL-UNNAMED'] : []),
  ];
}

/** The arguments of `java` for one start of the node. */
export function frontArguments(plan: LaunchPlan): readonly string[] {
  const logs = join(plan.dataDir, 'logs');
  return [
    ...commonJvmFlags(plan.javaMajor),
    ...PROFILE_FLAGS[plan.profile],
    '-Xms64m',
    `-Xmx${plan.heapMegabytes}m`,
    '-XX:MaxDirectMemorySize=512m',
    // The heap goes back to the system after a large request.
    '-XX:MinHeapFreeRatio=15',
    '-XX:MaxHeapFreeRatio=40',
    '-XX:+ExitOnOutOfMemoryError',
    `-XX:ErrorFile=${join(logs, 'hs_err_%p.log')}`,
    // `auto` starts without the archive when it does not fit this JVM.
    ...(plan.archive === null ? [] : ['-Xshare:auto', `-XX:SharedArchiveFile=${plan.archive}`]),
    `-Djava.io.tmpdir=${join(plan.dataDir, 'tmp')}`,
    '-cp',
    plan.jars.join(process.platform === 'win32' ? ';' : ':'),
    'clojure.main',
    '-m',
    'front.main',
    '--config',
    plan.configFile,
    ...(plan.profile === 'rocksdb' ? ['--data', plan.dataDir] : []),
    '--lock',
    join(plan.dataDir, 'node.lock'),
    ...(plan.socketPath === null
      ? ['--port', '0', ...(plan.tokenFile === null ? [] : ['--token-file', plan.tokenFile])]
      : ['--socket', plan.socketPath]),
    '--idle-exit',
    String(plan.idleExitSeconds),
  ];
}
