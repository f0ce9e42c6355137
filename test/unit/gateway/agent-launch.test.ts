import { describe, expect, test } from '@jest/globals';
import { type AgentStart, agentPlan, agentStart } from '../../../src/gateway/agent-launch.js';

const ADDRESS = 'http://127.0.0.1:7391';
const CODEX = 'C:\\Users\\mira\\AppData\\Roaming\\npm\\codex.CMD';
const windows: AgentStart = {
  env: { Path: 'C:\\Windows;C:\\Users\\mira\\AppData\\Roaming\\npm', PATHEXT: '.EXE;.CMD' },
  platform: 'win32',
  exists: (path) => path === CODEX,
};

describe('an agent behind the gateway', () => {
  test('is started on Windows through the command file of npm, on the same console', () => {
    const { command, args } = agentPlan('codex', { env: {}, codexConfig: undefined }).launch(ADDRESS);
    const start = agentStart(command, [...args, 'fix & test'], windows);
    expect(start.command).toMatch(/cmd\.exe$/);
    expect(start.args.at(-1)).toBe(`""${CODEX}" "-c" "openai_base_url='${ADDRESS}/codex'" "fix & test""`);
    expect(start.options.windowsHide).toBe(false);
  });

  test.each(['say "hi"', '100 %', 'two\nlines'])(
    'is not started on Windows with an argument that it cannot receive: %j',
    (arg) => {
      expect(() => agentStart('codex', [arg], windows)).toThrow(/codex\.CMD is a command file.*leave them out/);
    },
  );

  test('is reported as missing if Windows has no file for it', () => {
    expect(() => agentStart('claude', [], windows)).toThrow('the program claude is not on the PATH');
  });

  test('is started by its name on other systems', () => {
    const start = agentStart('claude', ['-p', '"%'], { env: {}, platform: 'linux', exists: () => false });
    expect(start).toMatchObject({ command: 'claude', args: ['-p', '"%'] });
  });
});
