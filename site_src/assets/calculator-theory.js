/* The arithmetic of the calculators: what roofbook/theory says, with the coefficients that it gave to the page. Functions
   are named as there. A range is [low, high]; null is unknown. Numbers are doubles in both languages and are combined in
   the same order, so the results agree to the last bit; the fields' limits keep every count below 2^53. */
(function () {
  "use strict";

  // ---- ranges

  function of(value) { return [value, value]; }
  function add(a, b) { return [a[0] + b[0], a[1] + b[1]]; }
  function subtract(a, b) { return [a[0] - b[1], a[1] - b[0]]; }
  function times(range, factor) {
    if (factor === 0) return [0, 0]; // of an open range too: infinity times nothing is nothing
    var ends = [range[0] * factor, range[1] * factor];
    return [Math.min(ends[0], ends[1]), Math.max(ends[0], ends[1])];
  }
  var OPEN = [0, Infinity];

  // ---- how many fit (counts.py)

  function most(endless, fits) {
    var fitting = 0, tooMany = 1;
    while (fits(tooMany)) {
      if (tooMany >= endless) return Infinity;
      fitting = tooMany;
      tooMany *= 2;
    }
    while (tooMany - fitting > 1) {
      var middle = Math.floor((fitting + tooMany) / 2);
      if (fits(middle)) fitting = middle; else tooMany = middle;
    }
    return fitting;
  }

  /** Round half to even, as Python does. */
  function round(value) {
    var floor = Math.floor(value), rest = value - floor;
    if (rest !== 0.5) return Math.round(value);
    return floor % 2 ? floor + 1 : floor;
  }

  function padded(tokens, step) { return Math.ceil(tokens / step) * step; }

  function theory(data) {
    // ---- what a sequence keeps (kv.py, quantization.py)

    function vectorBytes(type, dim) {
      return dim * (data.kv_blocks[type][1] / data.kv_blocks[type][0]);
    }

    function headBytes(kv, heads) {
      var types = kv.split("/"), key = types[0], value = types[types.length - 1];
      return heads[0] * (vectorBytes(key, heads[1]) + vectorBytes(value, heads[2]));
    }

    function tokenBytes(kept, kv, kind) {
      function with_(type) {
        return kept[kind].reduce(function (sum, heads) { return sum + headBytes(type, heads); }, 0);
      }
      if (kv === "unknown") return [with_(data.kv_unknown[0]), with_(data.kv_unknown[1])];
      return of(with_(kv));
    }

    var CELLS = {
      none: {
        far: function (tokens, sequences) { return sequences * tokens; },
        near: function (tokens, sequences, window) { return sequences * Math.min(tokens, window); }
      },
      slots: {
        far: function (tokens, sequences) { return sequences * padded(tokens, data.slots.pad); },
        near: function (tokens, sequences, window) {
          var wanted = Math.min(padded(tokens, data.slots.pad), window + data.slots.ubatch);
          return sequences * padded(wanted, data.slots.pad);
        }
      },
      paged: pages(data.pages.paged),
      growing: pages(data.pages.growing)
    };

    function pages(layout) {
      return {
        far: function (tokens, sequences) { return sequences * padded(tokens, layout.block); },
        near: function (tokens, sequences, window) {
          var held = Math.min(window - 1 + layout.batched, tokens);
          return sequences * (padded(held, layout.block) + layout.block);
        }
      };
    }

    function cacheBytes(model, tokens, kv, sequences, layout) {
      var kept = model.kept, cells = CELLS[layout || "none"];
      if (kept === null) return null;
      var bytes = times(tokenBytes(kept, kv, "global"), cells.far(tokens, sequences));
      if (kept.local_layers) {
        var near = cells.near(tokens, sequences, kept.window);
        bytes = add(bytes, times(tokenBytes(kept, kv, "local"), near));
      }
      return add(bytes, of(sequences * kept.state));
    }

    // ---- weights (weights.py)

    function deviceBytes(weights) { return subtract(weights.total, weights.embedding); }

    function touchedShare(experts, used, batch) { return 1 - Math.pow(1 - used / experts, batch); }

    function weightStepBytes(model, weights, batch) {
      var read = deviceBytes(weights);
      if (weights.expert[1] === 0) return read;
      var unread = 1 - touchedShare(model.experts, model.experts_used, batch);
      return [read[0] - unread * weights.expert[0], read[1] - unread * weights.expert[1]];
    }

    // ---- operations (work.py)

    function pairFlops(model, kind) {
      return model.pair_flops[kind] === null ? OPEN : of(model.pair_flops[kind]);
    }

    function decodeFlops(model, context, batch) {
      if (model.matmul === null) return null;
      var flops = times(add(model.matmul, of(model.head || 0)), 2);
      var seen = model.window === null ? context : Math.min(context, model.window);
      flops = add(flops, times(pairFlops(model, "global"), context));
      flops = add(flops, times(pairFlops(model, "local"), seen));
      return times(flops, batch);
    }

    function causalPairs(tokens, window) {
      if (window === null || tokens <= window) return tokens * tokens / 2;
      return window * tokens - window * window / 2;
    }

    function pairs(prompt, cached, chunk, window) {
      if (chunk === null) return causalPairs(prompt, window) - causalPairs(cached, window);
      var met = 0;
      for (var start = cached; start < prompt; start += chunk) {
        var end = Math.min(start + chunk, prompt);
        met += (end - start) * (window === null ? end : Math.min(end, window + end - start));
      }
      return met;
    }

    function prefillFlops(model, prompt, cached, chunk) {
      if (model.matmul === null) return null;
      var linear = times(model.matmul, 2 * (prompt - cached));
      var head = of(model.head === null ? 0 : 2 * model.head);
      var attention = of(0);
      if (prompt !== cached) {
        if (model.layers.global) {
          attention = add(attention, times(pairFlops(model, "global"), pairs(prompt, cached, chunk, null)));
        }
        if (model.layers.local) {
          attention = add(attention, times(pairFlops(model, "local"), pairs(prompt, cached, chunk, model.window)));
        }
      }
      return add(add(linear, head), attention);
    }

    // ---- ceilings (roofline.py)

    function rates(machine, quantization, side) {
      if (side === "measured") return {bandwidth: machine.measured.bandwidth, flops: machine.measured.flops};
      return {bandwidth: machine.bandwidth, flops: machine.peaks[data.peak_classes[quantization]] || null};
    }

    function stepBytes(model, weights, context, kv, batch) {
      return add(weightStepBytes(model, weights, batch), cacheBytes(model, context, kv, batch) || OPEN);
    }

    function decodeRate(rate, read, flops, batch) {
      if (rate.bandwidth === null) return null;
      var low = rate.bandwidth[0] / read[1], high = rate.bandwidth[1] / read[0];
      if (rate.flops !== null && flops !== null) {
        low = Math.min(low, rate.flops[0] / flops[1]);
        high = Math.min(high, rate.flops[1] / flops[0]);
      }
      return [batch * low, batch * high];
    }

    function crossing(weightBytes, kept, computed) {
      var spare = computed - kept;
      if (spare <= 0) return Infinity;
      var batch = weightBytes(1) / spare;
      for (var i = 0; i < data.crossing_rounds; i++) {
        var before = batch;
        batch = weightBytes(Math.max(1, round(batch))) / spare;
        if (Math.abs(batch - before) <= 1e-6 * Math.max(Math.abs(batch), Math.abs(before))) break;
      }
      return batch;
    }

    function crossoverBatch(model, weights, rate, context, kv) {
      var kept = cacheBytes(model, context, kv, 1), flops = decodeFlops(model, context, 1);
      if (kept === null || flops === null || rate.bandwidth === null || rate.flops === null) return null;
      var low = rate.flops[0] / rate.bandwidth[1], high = rate.flops[1] / rate.bandwidth[0];
      return [
        crossing(function (batch) { return weightStepBytes(model, weights, batch)[0]; }, kept[0], flops[1] / low),
        crossing(function (batch) { return weightStepBytes(model, weights, batch)[1]; }, kept[1], flops[0] / high)
      ];
    }

    /** From the lower end of both denominators to the higher one (Bound.whole); of one alone where one is unknown. */
    function wholeOf(sides) {
      var known = sides.filter(function (side) { return side !== null; });
      if (!known.length) return null;
      return [Math.min.apply(null, known.map(function (side) { return side[0]; })),
        Math.max.apply(null, known.map(function (side) { return side[1]; }))];
    }

    function prefillFloorMs(model, weights, rate, prompt, cached, chunkTokens) {
      var known = Math.min(cached, prompt - 1), fresh = prompt - known;
      var chunk = chunkTokens === null ? fresh : Math.min(fresh, chunkTokens);
      var work = prefillFlops(model, prompt, known, chunkTokens);
      if (work === null || rate.flops === null) return null;
      var read = times(weightStepBytes(model, weights, chunk), Math.ceil(fresh / chunk));
      var low = work[0] / rate.flops[1], high = work[1] / rate.flops[0];
      if (rate.bandwidth !== null) {
        low = Math.max(low, read[0] / rate.bandwidth[1]);
        high = Math.max(high, read[1] / rate.bandwidth[0]);
      }
      return [1000 * low, 1000 * high];
    }

    // ---- the longest prompt: by arithmetic (prompts.py), by a measured law (analysis/prefill.py)

    function longestPrompt(model, weights, rate, targetMs, cachedPercent, chunkTokens) {
      function floorMs(tokens) {
        var cached = Math.floor(tokens * cachedPercent / 100);
        return prefillFloorMs(model, weights, rate, tokens, cached, chunkTokens);
      }
      if (floorMs(1) === null) return null;
      return [
        most(data.endless, function (tokens) { return floorMs(tokens)[1] <= targetMs; }),
        most(data.endless, function (tokens) { return floorMs(tokens)[0] <= targetMs; })
      ];
    }

    function prediction(law, tokens, cachedShare) {
      var terms = law.powers.map(function (power) {
        return power ? Math.pow(tokens, power) * (1 - Math.pow(cachedShare, power)) : 1;
      });
      var value = 0, variance = 0;
      terms.forEach(function (term, i) {
        value += law.coefficients[i] * term;
        terms.forEach(function (other, j) { variance += term * law.covariance[i][j] * other; });
      });
      variance += law.sigma * law.sigma * Math.pow(Math.abs(value), law.variance_power);
      var half = law.t * Math.sqrt(Math.max(variance, 0));
      return {mid: value, low: value - half, high: value + half};
    }

    /** Where *above* first turns positive: 0 from the start, null if never within reach. */
    function firstAbove(above, longest) {
      if (above(1) >= 0) return 0;
      var low = 1;
      while (low < data.law_reach * longest) {
        var high = low * 1.25;
        if (above(high) >= 0) return halved(above, low, high);
        low = high;
      }
      return null;
    }

    function halved(above, low, high) {
      for (;;) {
        var middle = (low + high) / 2;
        if (middle <= low || middle >= high) return high;
        if (above(middle) >= 0) high = middle; else low = middle;
      }
    }

    function promptBudget(law, targetMs, cachedPercent) {
      var leftMs = targetMs - (law.overhead_ms || 0);
      function reach(edge) {
        return firstAbove(function (tokens) {
          return prediction(law, tokens, cachedPercent / 100)[edge] - leftMs;
        }, law.longest_tokens);
      }
      return {mid: reach("mid"), low: reach("high"), high: reach("low")};
    }

    // ---- what the page asks

    function chunkOf(layout) { return layout === "slots" ? data.slots.ubatch : null; }

    /** Does it fit, how many at once, what takes how much: bytes. */
    function memory(asked) {
      var model = asked.model, machine = asked.machine, layout = asked.layout, paged = layout === "paged";
      var limit = machine.limits[asked.macos] || machine.limits[""];
      if (limit === null) return null;
      var limitBytes = paged ? times(limit.bytes, data.vllm_share) : limit.bytes;
      var reserve = asked.reserve === null ? (paged ? data.vllm_peak : data.reserve) : of(asked.reserve);
      var request = cacheBytes(model, asked.context, asked.kv, 1, layout);
      var told = {
        limit: limitBytes, limit_basis: paged ? "share" : limit.basis, reserve: reserve, request: request,
        token: model.kept === null ? null : tokenBytes(model.kept, asked.kv, "global"),
        weights: null, counted: "all", caches: null, needed: null, spare: null, sequences: null, fits: null,
        crossover: null, scarcity: null, projector: null
      };
      if (asked.weights === null || request === null) return told;
      told.counted = layout === "slots" && machine.discrete ? "device" : "all";
      told.weights = asked.weights.total;
      if (told.counted === "device") {
        told.weights = asked.weights.device === null ? deviceBytes(asked.weights) : of(asked.weights.device);
      }
      told.projector = of(asked.weights.projector || 0);
      told.caches = cacheBytes(model, asked.context, asked.kv, asked.users, layout);
      var fixed = add(add(add(told.weights, [0, 0]), told.projector), reserve);
      told.needed = add(fixed, told.caches);
      told.spare = subtract(limitBytes, told.needed);
      var pool = subtract(limitBytes, fixed);
      function caches(count) { return cacheBytes(model, asked.context, asked.kv, count, layout); }
      told.sequences = [
        most(data.endless, function (count) { return caches(count)[1] <= pool[0]; }),
        most(data.endless, function (count) { return caches(count)[0] <= pool[1]; })
      ];
      told.fits = told.sequences[0] >= asked.users ? true : told.sequences[1] < asked.users ? false : null;
      told.crossover = wholeOf(["datasheet", "measured"].map(function (side) {
        return crossoverBatch(model, asked.weights, rates(machine, asked.quantization, side), asked.context, asked.kv);
      }));
      told.scarcity = runsOutFirst(pool, told.sequences, asked, told.crossover);
      return told;
    }

    function runsOutFirst(pool, sequences, asked, crossover) {
      if (asked.model.context_limit !== null && asked.context > asked.model.context_limit) return "context";
      if (pool[0] < 0) return "weights";
      return crossover !== null && crossover[0] <= sequences[0] ? "arithmetic" : "memory";
    }

    /** The most prompt tokens within a TTFT target: by the law, by arithmetic at the two rates. */
    function prompts(asked) {
      function byArithmetic(side) {
        if (asked.weights === null) return null;
        return longestPrompt(asked.model, asked.weights, rates(asked.machine, asked.quantization, side),
          asked.target_ms, asked.cached_percent, chunkOf(asked.layout));
      }
      return {
        law: asked.law === null ? null : promptBudget(asked.law, asked.target_ms, asked.cached_percent),
        datasheet: byArithmetic("datasheet"),
        measured: byArithmetic("measured")
      };
    }

    /** The most that decode and prefill can reach: tokens a second, ms, by both rates. */
    function ceilings(asked) {
      if (asked.weights === null) return null;
      var model = asked.model, weights = asked.weights;
      var flops = decodeFlops(model, asked.prompt, asked.batch);
      var read = stepBytes(model, weights, asked.prompt, asked.kv, asked.batch);
      function against(side) {
        var rate = rates(asked.machine, asked.quantization, side);
        return {
          bandwidth: rate.bandwidth,
          flops: rate.flops,
          alone: decodeRate(rate, stepBytes(model, weights, 0, asked.kv, 1), decodeFlops(model, 0, 1), 1),
          alone_full: decodeRate(rate, stepBytes(model, weights, asked.prompt, asked.kv, 1),
            decodeFlops(model, asked.prompt, 1), 1),
          together: decodeRate(rate, read, flops, asked.batch),
          prefill_ms: prefillFloorMs(model, weights, rate, asked.prompt, 0, chunkOf(asked.layout)),
          crossover: crossoverBatch(model, weights, rate, asked.prompt, asked.kv)
        };
      }
      var datasheet = against("datasheet"), measured = against("measured");
      return {
        crossover: wholeOf([datasheet.crossover, measured.crossover]),
        step_bytes: read, weight_bytes: weightStepBytes(model, weights, asked.batch), step_flops: flops,
        prefill_flops: prefillFlops(model, asked.prompt, 0, chunkOf(asked.layout)),
        datasheet: datasheet, measured: measured
      };
    }

    return {memory: memory, prompts: prompts, ceilings: ceilings};
  }

  window.roofbookTheory = theory;
})();
