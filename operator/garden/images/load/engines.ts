import { createWriteStream } from 'node:fs';
import { dirname } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { CommandError, run } from '../../host/command.ts';
import { NoRoomError, whileRoom } from '../../host/disk-room.ts';

const LOOK_MS = 20_000;
const SAVE_MS = 30 * 60_000;

/**
 * Runs a program of this machine; rejects with its error output.
 * @param file receives standard output, while the disk has room
 */
type Run = (command: string[], timeoutMs: number, file?: string) => Promise<string>;

const runHere: Run = (command, timeoutMs, file) =>
  run(command, {
    timeoutMs,
    ...(file !== undefined && {
      output: (stdout) =>
        pipeline(
          stdout,
          (content: AsyncIterable<Buffer>) => whileRoom(content, dirname(file), command.at(-1)!),
          createWriteStream(file, { mode: 0o600 }),
        ),
    }),
  });

/** A container engine on this machine that may have an image. */
interface Engine {
  name: string;
  /** Saves the image into a file. Rejects on failure. */
  save: (run: Run, image: string, ref: string, file: string) => Promise<unknown>;
}

const ENGINES: readonly Engine[] = [
  {
    name: 'docker',
    save: async (run, image, _, file) => {
      await run(['docker', 'image', 'inspect', '--format', '{{.Id}}', image], LOOK_MS);
      await run(['docker', 'image', 'save', image], SAVE_MS, file);
    },
  },
  {
    name: 'podman',
    save: async (run, image, _, file) => {
      await run(['podman', 'image', 'inspect', '--format', '{{.Id}}', image], LOOK_MS);
      await run(['podman', 'image', 'save', '--format', 'docker-archive', image], SAVE_MS, file);
    },
  },
  {
    name: 'containerd',
    save: async (run, _, ref, file) => {
      // Without a running containerd ctr would wait ten seconds.
      const list = ['ctr', '--connect-timeout', '2s', 'namespaces', 'list', '--quiet'];
      const namespaces = (await run(list, LOOK_MS)).split('\n').filter(Boolean);
      for (const namespace of namespaces) {
        const ctr = ['ctr', '--namespace', namespace, 'images'];
        const found = await run([...ctr, 'list', '--quiet', `name==${ref}`], LOOK_MS);
        if (found.trim() !== '') return run([...ctr, 'export', '-', ref], SAVE_MS, file);
      }
      throw new Error(`no namespace of ${namespaces.length} has it`);
    },
  },
];

/**
 * Saves an image from the first of Docker, Podman and containerd that has it. Resolves to the engine's name. Throws all
 * engines' errors.
 * @param ref full name of the image
 */
export async function saveFromEngine(image: string, ref: string, file: string, run = runHere): Promise<string> {
  const said: string[] = [];
  for (const { name, save } of ENGINES) {
    try {
      await save(run, image, ref, file);
      return name;
    } catch (error) {
      if (error instanceof NoRoomError) throw error;
      const absent = error instanceof CommandError && error.isNotInstalled;
      said.push(`${name}: ${absent ? 'is not installed' : reason(error as Error)}`);
    }
  }
  throw new Error(`no container engine on this machine has ${image} (${said.join('; ')})`);
}

const reason = (error: Error): string =>
  (error instanceof CommandError ? error.stderr.trim().split('\n').at(-1) : undefined) || error.message;
