import { Option } from 'commander';
import type { Contract } from '../../cli/contract.js';
import { collect } from '../../cli/flags.js';
import { gcCommand, packCommand } from './commands.js';

/** CortexFS session directories: export, import, packs and garbage collection. */
export const CORTEXFS: Contract = {
  commands: () => [packCommand(), gcCommand()],
  exports: {
    cortexfs: {
      about: 'a CortexFS session directory; an existing one is updated (docs/cortexfs.md)',
      writesFolder: true,
      load: async () => (await import('./session-formats.js')).exportDirectory,
    },
  },
  imports: {
    cortexfs: {
      about: 'a CortexFS session directory, written by Palimpsest or another program (docs/cortexfs.md)',
      recognises: async (path) => (await import('./read-directory.js')).isSessionDirectory(path),
      options: () => [
        new Option('--session <id>', 'cortexfs: id of the imported session (default: its own name)'),
        new Option('--plan', 'cortexfs: show the changes without making them'),
        new Option(
          '--root <folder>',
          'cortexfs: folder that the session belongs to; repeatable (default: the working folder)',
        ).argParser(collect),
      ],
      run: async (source) => (await import('./session-formats.js')).importSessionDirectory(source),
    },
  },
};
