import * as z from 'zod';
import { defined } from '../values/defined.js';
import { ANSWERS, REQUESTS } from './api-schemas.js';
import type { ContractEvents, ContractQuestion, HttpContract, Operation, Schemas } from './http-contract.js';
import { OPERATIONS } from './operations.js';
import { EVENTS_PARAMETERS } from './review-routes.js';

type JsonMap = { readonly [key: string]: unknown };

const ref = (name: string): JsonMap => ({ $ref: `#/components/schemas/${name}` });
const json = (name: string, type = 'application/json'): JsonMap => ({ [type]: { schema: ref(name) } });

/** Returns the JSON Schema of one body, without `$schema` and `$id`. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output'): JsonMap {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { target: 'draft-2020-12', io });
  return rest;
}

/** Returns the schemas of requests and answers. A problem includes the members of contracts. */
function allSchemas(contracts: readonly HttpContract[]): { readonly requests: Schemas; readonly answers: Schemas } {
  const problem = ANSWERS.Problem.extend(Object.assign({}, ...contracts.map((contract) => contract.problem)));
  return {
    requests: Object.assign({}, REQUESTS, ...contracts.map((contract) => contract.requests)),
    answers: Object.assign(
      {},
      ANSWERS,
      { Problem: problem.describe(ANSWERS.Problem.description ?? '') },
      ...contracts.map((contract) => contract.answers),
    ),
  };
}

/**
 * Returns the schemas of the document. If a request and an answer have the same name, the answer's
 * schema is used.
 */
function schemas({ requests, answers }: ReturnType<typeof allSchemas>): JsonMap {
  return Object.fromEntries([
    ...Object.entries(requests).map(([name, schema]) => [name, schemaOf(schema, 'input')]),
    ...Object.entries(answers).map(([name, schema]) => [name, schemaOf(schema, 'output')]),
  ]);
}

/** The parts of an operation that describe its answer. */
type Answered = Pick<ContractQuestion, 'summary' | 'media' | 'answer'> & Pick<Operation, 'statuses'>;

/** Builds the document's entry for an operation. `more` is the entry's part about the request. */
function operation(id: string, { summary, answer, media, statuses = [200] }: Answered, more: JsonMap): JsonMap {
  const plain =
    media === undefined
      ? { 'text/plain': { schema: { type: 'string' } } }
      : { [media]: { schema: { type: 'string', format: 'binary' } } };
  const content = answer === null ? plain : json(answer);
  const successes = Object.fromEntries(statuses.map((status) => [status, { description: summary, content }]));
  const problem = { description: 'A problem', content: json('Problem', 'application/problem+json') };
  return { operationId: id, summary, ...more, responses: { ...successes, default: problem } };
}

function requestOf(
  { path, request, example }: Pick<Operation, 'path' | 'example' | 'request'>,
  requests: Schemas,
): JsonMap {
  return {
    ...(path.includes('{id}')
      ? {
          parameters: [
            { name: 'id', in: 'path', required: true, description: 'The session', schema: { type: 'string' } },
          ],
        }
      : {}),
    ...(request === undefined
      ? {}
      : {
          requestBody: {
            required: requests[request]?.safeParse({}).success !== true,
            content: { 'application/json': { schema: ref(request), example } },
          },
        }),
  };
}

/**
 * Builds one parameter for each member of a schema. Parameters are in the query, except those in
 * the path.
 */
function parametersOf(path: string, schema: z.ZodType, example: JsonMap = {}): readonly JsonMap[] {
  const { properties = {}, required = [] } = schemaOf(schema, 'input') as {
    properties?: Record<string, JsonMap>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, { description, ...given }]) => ({
    name,
    in: path.includes(`{${name}}`) ? 'path' : 'query',
    required: required.includes(name),
    ...defined({ description, example: example[name] }),
    schema: given,
  }));
}

function eventsOperation(operationId: string, { path, summary }: ContractEvents): JsonMap {
  const parameters = [
    { name: 'id', in: 'path', required: true, description: 'The session', schema: { type: 'string' } },
    ...parametersOf(path, EVENTS_PARAMETERS),
    {
      name: 'Last-Event-ID',
      in: 'header',
      required: false,
      description: 'As `after`, and takes precedence over it',
      schema: { type: 'string' },
    },
  ];
  const problem = { description: 'A problem', content: json('Problem', 'application/problem+json') };
  const responses = {
    200: { description: summary, content: { 'text/event-stream': { schema: { type: 'string' } } } },
    default: problem,
  };
  return { operationId, summary, parameters, responses };
}

/** Builds the OpenAPI 3.1 document from the schemas that validate requests and answers. */
export function openApiDocument(version: string, contracts: readonly HttpContract[]): JsonMap {
  const all = allSchemas(contracts);
  const paths: Record<string, Record<string, JsonMap>> = {};
  const operations = [OPERATIONS, ...contracts.map((contract) => contract.operations ?? {})];
  for (const [id, given] of operations.flatMap((table) => Object.entries<Operation>(table))) {
    const made = operation(id, given, requestOf(given, all.requests));
    paths[given.path] = { ...paths[given.path], [given.method.toLowerCase()]: made };
  }
  for (const [id, given] of contracts.flatMap(({ questions = {} }) => Object.entries(questions))) {
    const parameters = parametersOf(given.path, given.parameters, given.example);
    paths[given.path] = { ...paths[given.path], get: operation(id, given, { parameters }) };
  }
  for (const [id, given] of contracts.flatMap(({ events = {} }) => Object.entries(events)))
    paths[given.path] = { get: eventsOperation(id, given) };
  return {
    openapi: '3.1.0',
    info: {
      title: 'Palimpsest',
      version,
      description:
        'A bitemporal context service for LLM agents: reports and requests of harnesses, and questions of ' +
        'reviewers about ' +
        'the past.',
    },
    jsonSchemaDialect: 'https://json-schema.org/draft/2020-12/schema',
    security: [{ bearer: [] }],
    paths,
    components: { schemas: schemas(all), securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
  };
}
