import { describe, expect, it } from 'vitest';
import { COMMANDS, GLOBAL_OPTIONS } from '../../../operator/cli/commands.ts';
import { UsageError } from '../../../operator/cli/errors.ts';
import { parse, parseCliDuration, usageLine } from '../../../operator/cli/parse.ts';
import { editDistance, nearestWord } from '../../../operator/cli/suggest.ts';

const read = (line: string) => {
  const { command, options, positionals, help } = parse(line.split(' ').filter(Boolean), COMMANDS, GLOBAL_OPTIONS);
  return { command: command?.name, options, positionals, help };
};

const failure = (line: string): string => {
  try {
    read(line);
  } catch (error) {
    expect(error).toBeInstanceOf(UsageError);
    const { message, advice, exitCode } = error as UsageError;
    expect(exitCode).toBe(2);
    return advice === undefined ? message : `${message}; ${advice}`;
  }
  throw new Error(`"${line}" was accepted`);
};

describe('parse', () => {
  it.each([
    ['get', { command: 'get', options: {}, positionals: [] }],
    [
      'get workerclusters -A -o json',
      { options: { 'all-namespaces': true, output: 'json' }, positionals: ['workerclusters'] },
    ],
    ['-n team get wc demo -oyaml', { options: { namespace: 'team', output: 'yaml' }, positionals: ['wc', 'demo'] }],
    ['get -Aojson', { options: { 'all-namespaces': true, output: 'json' }, positionals: [] }],
    ['get --namespace=team --output=wide', { options: { namespace: 'team', output: 'wide' } }],
    ['scale demo --nodes 5', { options: { nodes: 5 }, positionals: ['demo'] }],
    ['wait demo --for Deleted --timeout 1m30s', { options: { for: 'Deleted', timeout: 90_000 } }],
    ['apply -f a.yaml -f -', { options: { filename: ['a.yaml', '-'] } }],
    ['up --detach=false', { options: { detach: false } }],
    ['delete -- -odd', { options: {}, positionals: ['-odd'] }],
    ['get --help --namespace x', { help: true, command: 'get' }],
    ['scale -h', { help: true, command: 'scale' }],
    ['', { command: undefined, help: false }],
  ])('reads "%s"', (line, expected) => {
    expect(read(line)).toMatchObject(expected);
  });

  it.each([
    ['gte', 'unknown command "gte"; did you mean "get"?'],
    ['describ demo', 'unknown command "describ"; did you mean "describe"?'],
    ['frobnicate', 'unknown command "frobnicate"; see "coppice help"'],
    ['get --ouput json', 'unknown option "--ouput"; did you mean "--output"?'],
    ['--version', 'unknown option "--version"; run "coppice version"'],
    ['get --xyzzy', 'unknown option "--xyzzy"; see "coppice get --help"'],
    ['get -o jsno', '-o does not know "jsno"; did you mean "json"?'],
    ['get -o', '-o needs a value; write -o json|yaml|wide|name'],
    ['create x', 'unknown command "create"; run "coppice apply -f FILE"'],
    ['sleep demo', 'unknown command "sleep"; run "coppice hibernate NAME"'],
    ['scale demo 4', 'scale does not take "4"; run "coppice scale demo --nodes 4"'],
    ['scale demo many', 'scale does not take "many"; usage: coppice scale NAME [options]'],
    ['upgrade demo 1.36', 'upgrade does not take "1.36"; run "coppice upgrade demo --to 1.36"'],
    ['wait demo Deleted', 'wait does not take "Deleted"; run "coppice wait demo --for Deleted"'],
    ['apply a.yaml', 'apply does not take "a.yaml"; run "coppice apply -f a.yaml"'],
    ['logs operator 50', 'logs does not take "50"; run "coppice logs operator --lines 50"'],
    ['get a b c', 'get does not take "c"; usage: coppice get [KIND] [NAME] [options]'],
    ['scale', 'scale needs NAME; usage: coppice scale NAME [options]'],
    ['scale demo --nodes many', '--nodes needs a whole number, but got "many"'],
    ['wait demo --timeout soon', '--timeout needs a duration, but got "soon"; write it like 90s, 5m or 1h30m'],
    ['up --detach=maybe', '--detach takes no value, but got "maybe"'],
    ['get -z', 'unknown option "-z"; see "coppice get --help"'],
  ])('refuses "%s"', (line, expected) => {
    expect(failure(line)).toBe(expected);
  });

  it('has unique words and letters', () => {
    expect(new Set(COMMANDS.map((command) => command.name)).size).toBe(COMMANDS.length);
    for (const command of COMMANDS) {
      const options = [...command.options, ...GLOBAL_OPTIONS];
      const letters = options.flatMap((option) => option.short ?? []);
      expect(new Set(letters).size, command.name).toBe(letters.length);
      expect(new Set(options.map((option) => option.name)).size, command.name).toBe(options.length);
    }
  });

  it.each([
    ['90s', 90_000],
    ['1h30m', 5_400_000],
    ['500ms', 500],
    ['10', 10_000],
    ['1.5m', 90_000],
    ['5 minutes', undefined],
    ['', undefined],
    ['m5', undefined],
  ])('takes %s for %s ms', (text, expected) => {
    expect(parseCliDuration(text)).toBe(expected);
  });

  it('writes usage lines', () => {
    const usage = Object.fromEntries(COMMANDS.map((command) => [command.name, usageLine(command)]));
    expect(usage.delete).toBe('coppice delete NAME... [options]');
    expect(usage.help).toBe('coppice help [COMMAND]');
  });
});

describe('suggestions', () => {
  it.each([
    ['', '', 0],
    ['get', 'gte', 1],
    ['status', 'stauts', 1],
    ['kitten', 'sitting', 3],
  ])('%s to %s are %i edits', (a, b, edits) => {
    expect(editDistance(a, b)).toBe(edits);
  });

  it('prefers a continuation of the typed word, and is undefined when nothing is similar', () => {
    expect(nearestWord('kube', ['get', 'kubeconfig'])).toBe('kubeconfig');
    expect(nearestWord('xyzzy', ['get', 'up', 'down'])).toBeUndefined();
  });
});
