import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { parseExperiment } from '../../../../src/lab/experiments/experiment.js';
import { parseReplayConfig } from '../../../../src/lab/replay/replay-config.js';

const experiment = { name: 'window', question: 'what for?', sessions: ['*'], parameters: [{ name: 'a', config: {} }] };

describe('configurations', () => {
  test('default to all defaults if they are empty', () => {
    expect(parseReplayConfig({}, 'x')).toEqual({
      window: { perTurn: 5, turns: 3 },
      shortIds: false,
      strict: false,
      tools: 'wrapped',
      tokens: true,
    });
    expect(parseExperiment(experiment, 'x').parameters[0]?.config.window).toEqual({ perTurn: 5, turns: 3 });
  });

  test.each([
    [{ window: { perTurn: 1.5 } }, /window\.perTurn/],
    [{ strict: 'yes' }, /strict/],
    [{ windows: {} }, /"windows"/],
  ])('refuse %j by the name of the error', (value, message) => {
    expect(() => parseReplayConfig(value, 'config.json')).toThrow(message);
  });

  test.each([
    [{ ...experiment, name: 'Not A Name' }, /name/],
    [{ ...experiment, sessions: [] }, /sessions/],
    [{ ...experiment, parameters: [experiment.parameters[0], experiment.parameters[0]] }, /two have the name "a"/],
  ])('refuse an invalid experiment: case %#', (value, message) => {
    expect(() => parseExperiment(value, 'x.json')).toThrow(message);
  });

  test('are valid in all supplied files', () => {
    for (const name of ['window', 'tools']) {
      expect(
        parseExperiment(JSON.parse(readFileSync(`scripts/experiments/${name}.json`, 'utf8')), name).parameters.length,
      ).toBeGreaterThan(1);
    }
    expect(parseReplayConfig(JSON.parse(readFileSync('scripts/replay-corpus.json', 'utf8')), 'corpus')).toBeDefined();
  });
});
