/** Runs what it is given one after the other, in the order in which it was asked to. One that fails keeps none from its turn. */
export class InTurn {
  #last: Promise<unknown> = Promise.resolve();

  run<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => {});
    return turn;
  }
}
