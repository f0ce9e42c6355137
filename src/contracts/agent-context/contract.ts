import { Option } from 'commander';
import type { Contract } from '../../cli/contract.js';

/** Agent Context: an export format. */
export const AGENT_CONTEXT: Contract = {
  exports: {
    'agent-context': {
      about: 'an Agent Context bundle, one file for each kind of object (docs/agent-context.md)',
      writesFolder: true,
      options: () => [new Option('--agent <name>', 'include the memory of this agent')],
      appliesRules: true,
      load: async () => {
        const { exportBundle } = await import('./export-bundle.js');
        return ({ folder, flags: { agent }, ...asked }) =>
          exportBundle({ ...asked, agent: typeof agent === 'string' ? agent : undefined }, folder);
      },
    },
  },
};
