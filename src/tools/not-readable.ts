import type { LocatedFile } from '../client/file-access.js';
import { named, SourceError } from '../filesystem/access/errors.js';
import type { ReadingWithText, SourceReading } from '../filesystem/access/read-source.js';
import { headerValue, shownName } from './framing.js';
import { ToolError } from './tool.js';

/**
 * Returns the error for a reading that has no text: `not-text` or `not-found`. The error carries
 * the reading.
 */
export function notReadable(
  reading: Exclude<SourceReading, ReadingWithText>,
  file: LocatedFile,
  name: string,
): ToolError {
  const shown = shownName(name);
  const learned = { readings: [{ source: file.source, reading, activate: false }] };
  switch (reading.kind) {
    case 'binary':
      return new ToolError('not-text', `${shown} is not UTF-8 text (binary, ${reading.size} bytes).`, {
        next: 'Its bytes cannot be shown; it is recorded by its hash only.',
        learned,
      });
    case 'missing':
      return new ToolError('not-found', name, {
        learned,
        cause: new SourceError('not-found', `${named(name)} does not exist`, { path: name }),
      });
    case 'not-regular':
      if (reading.what === 'directory')
        return new ToolError('not-text', `${shown} is a folder, not a file.`, {
          next: `List it instead: ls path=${headerValue(name)}`,
        });
      return new ToolError('not-text', `${shown} is a ${reading.what}, not a regular file.`, {
        next: 'Only regular files can be read.',
      });
    case 'unreachable':
      return new ToolError('not-found', `${shown} cannot be read: ${UNREACHABLE[reading.reason]}.`, {
        next: 'Use another file. Its stored version, if any, can be read by its id.',
      });
  }
}

const UNREACHABLE: Readonly<Record<Extract<SourceReading, { kind: 'unreachable' }>['reason'], string>> = {
  'no-permission': 'permission denied',
  io: 'the system reports a read error',
  'mount-absent': 'its folder or mount is absent',
  'foreign-filesystem': 'it is on a filesystem that cannot be reached from here',
  'outside-roots': 'it is outside the allowed folders',
  loop: 'its path has a loop of symbolic links',
  'invalid-path': 'no file can have this name',
};
