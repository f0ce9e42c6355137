import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { EPOCH_GUIDE, guideText } from '../../../src/assembly/epoch/epoch-guide.js';
import { guideOf, VERB_INPUT, VERBS } from '../../../src/extensions/guide.js';
import { NOTICE } from '../../../src/gateway/steer/wire-request.js';
import { INSTRUCTIONS } from '../../../src/mcp/connection.js';
import { STEERED_GUIDE } from '../../../src/mcp/steered-verbs.js';
import { countTokens } from '../../../src/review/ask/token-count.js';
import { createTools } from '../../../src/tools/create-tools.js';
import { VERB_DESCRIPTIONS } from '../../../src/tools/verb-descriptions.js';

const ALL = createTools({ bash: true });

describe('the tools', () => {
  test('have a fixed order; bash only if allowed, no writing tool in read-only mode [§3.3]', () => {
    const names = (options: Parameters<typeof createTools>[0]): string =>
      createTools(options)
        .map(({ name }) => name)
        .join(' ');
    expect(names({ bash: true })).toBe(
      'read write edit ls find grep tree bash activate deactivate pin unpin context recall',
    );
    expect(names({})).toBe('read write edit ls find grep tree activate deactivate pin unpin context recall');
    expect(names({ bash: true, readOnly: true })).toBe(
      'read ls find grep tree activate deactivate pin unpin context recall',
    );
  });

  test('take at most 8,000 bytes in a list', () => {
    const listed = ALL.map(({ name, description, inputSchema, annotations }) => ({
      name,
      description,
      inputSchema: { ...inputSchema, required: inputSchema.required ?? [] },
      annotations,
    }));
    expect(Buffer.byteLength(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { tools: listed } }))).toBeLessThanOrEqual(
      8_000,
    );
  });

  test('have one documented call each, which fits the schema [issue: public examples]', () => {
    const page = readFileSync('docs/tools.md', 'utf8');
    const calls = [...page.matchAll(/^([a-z]+) (\{".*\})$/gm)].map(([, name = '', args = '']) => ({ name, args }));
    expect(calls.map(({ name }) => name)).toEqual(ALL.map(({ name }) => name));
    const ajv = new Ajv2020({ strict: false });
    for (const { name, args } of calls) {
      const { inputSchema } = ALL.find((tool) => tool.name === name) ?? {};
      const check = ajv.compile({ ...inputSchema, additionalProperties: false });
      expect([name, check(JSON.parse(args)), check.errors]).toEqual([name, true, null]);
    }
  });

  test('have schemas that every client supports', () => {
    for (const { inputSchema } of ALL) {
      expect(JSON.stringify(inputSchema)).not.toMatch(
        /"\$schema"|"\$ref"|"\$defs"|"anyOf"|"oneOf"|"allOf"|"const"|"type":\[|9007199254740991|"additionalProperties"/,
      );
      expect(inputSchema.type).toBe('object');
      for (const [name, property] of Object.entries(inputSchema.properties)) {
        const { description } = property as { readonly description?: string };
        expect(`${name}: ${description}`).toMatch(/: .{4,}/);
        const optional = !(inputSchema.required ?? []).includes(name);
        const bounded = 'type' in property && ['integer', 'boolean', 'number'].includes(String(property.type));
        if (optional && bounded) expect(`${name}: ${description}`).toMatch(/default/i);
      }
    }
  });

  test('have descriptions of at most three sentences', () => {
    for (const { description } of ALL)
      expect(description.split(/[.!?](?:\s|$)/).filter(Boolean).length).toBeLessThanOrEqual(3);
  });

  test('carry the annotations by which clients approve calls', () => {
    const annotations = Object.fromEntries(ALL.map((tool) => [tool.name, tool.annotations]));
    const looking = { readOnlyHint: true, openWorldHint: false };
    const steering = { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false };
    for (const name of ['read', 'ls', 'find', 'grep', 'tree', 'context', 'recall'])
      expect({ name, ...annotations[name] }).toEqual({ name, ...looking });
    for (const name of ['activate', 'deactivate', 'pin', 'unpin'])
      expect({ name, ...annotations[name] }).toEqual({ name, ...steering });
    expect(annotations.write).toEqual({
      readOnlyHint: false,
      destructiveHint: true,
      idempotentHint: true,
      openWorldHint: false,
    });
    expect(annotations.edit).toEqual({
      readOnlyHint: false,
      destructiveHint: true,
      idempotentHint: false,
      openWorldHint: false,
    });
    expect(annotations.bash).toEqual({
      readOnlyHint: false,
      destructiveHint: true,
      idempotentHint: false,
      openWorldHint: true,
    });
  });

  test('fit every client with their instructions, with the essentials in the first 512 characters', () => {
    expect(INSTRUCTIONS.length).toBeLessThanOrEqual(2_048);
    const start = INSTRUCTIONS.slice(0, 512);
    for (const word of ['read', 'activate', 'deactivate', 'pin', 'context', 'Error:']) expect(start).toContain(word);
  });

  test('have guides of at most 200 tokens, which name the arguments of a call where its line has them', () => {
    const guides = {
      epoch: guideText(EPOCH_GUIDE),
      ssot: guideOf('ssot') ?? '',
      steered: STEERED_GUIDE,
      notice: NOTICE,
    };
    for (const [name, guide] of Object.entries(guides)) {
      expect([name, countTokens(guide)]).toEqual([name, expect.any(Number)]);
      expect(countTokens(guide)).toBeLessThanOrEqual(200);
      expect([name, guide.includes('status=... args=...')]).toEqual([name, name !== 'ssot']);
    }
    // Each request has the tools from the first on, but the guide only before our first text.
    expect(guideOf('epoch')).toBeUndefined();
    const tools = Object.entries(VERBS).map(([name, description]) => ({ name, description, input_schema: VERB_INPUT }));
    expect(countTokens(JSON.stringify(tools))).toBeLessThanOrEqual(200);
    expect(countTokens(INSTRUCTIONS)).toBeLessThanOrEqual(200);
    // The model of this request has none of our tools.
    expect(NOTICE).not.toMatch(/activate|deactivate|\bpin\b/);
  });

  test('say over MCP that nothing leaves the conversation, and in the loop how the context behaves', () => {
    const { mcp, loop } = VERB_DESCRIPTIONS;
    const over = createTools();
    for (const verb of ['activate', 'deactivate', 'pin', 'unpin'] as const) {
      expect(over.find(({ name }) => name === verb)?.description).toBe(mcp[verb]);
      expect(VERBS[verb]).toBe(loop[verb]);
    }
    for (const verb of ['deactivate', 'pin', 'unpin'] as const)
      expect(mcp[verb]).toContain('Your conversation stays as it is');
    for (const text of [INSTRUCTIONS, ...over.map(({ description }) => description)]) {
      expect(text).not.toMatch(/collapse|your (working |active )?context|stays? loaded/i);
    }
    expect(INSTRUCTIONS.slice(0, 512)).toContain('free nothing in your conversation');
    expect(loop.deactivate).toContain('Remove objects from your context');
  });
});
