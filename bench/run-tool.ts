import { createTools } from '../src/tools/create-tools.js';
import type { ToolAnswer, ToolContext } from '../src/tools/tool.js';

/** The tools, built once, as in a server. */
const TOOLS = new Map(createTools().map((tool) => [tool.name, tool]));

/** Calls a tool in this process. Throws if the call fails. */
export async function runTool(
  name: string,
  args: Readonly<Record<string, unknown>>,
  context: ToolContext,
): Promise<ToolAnswer> {
  const answer = await TOOLS.get(name)?.run(args, context);
  if (answer?.isError !== false) throw new Error(`${name} ${JSON.stringify(args)}: ${answer?.text}`);
  return answer;
}
