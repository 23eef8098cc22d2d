/* The calculators' page: fields in, answers out, and the whole state in the address. Everything that is said comes with
   the page in its language; texts are put in as text. Nothing is fetched. */
(function () {
  "use strict";

  var data, theory, state; // what the page brought, the arithmetic over it, what the fields say
  var lang = document.documentElement.lang || "en";
  var GIB = 1073741824, GB = 1e9;
  var WHOLE = ["context", "users", "cached", "prompt", "batch"];
  var AMOUNTS = WHOLE.concat(["reserve", "target"]);
  var NUMBER = /^-?\d+(\.\d+)?$/;
  var CHOICES = ["subject", "model", "weights", "machine", "server", "kv", "macos"];
  var SECTIONS = {memory: ["context", "users", "reserve"], prompt: ["target", "cached"], ceiling: ["prompt", "batch"]};

  // ---- words and numbers

  function say(name, values) {
    return data.words[name].replace(/%\((\w+)\)s/g, function (_, place) { return values[place]; });
  }

  function number(value, decimals) {
    if (value === null || isNaN(value)) return data.words.unknown;
    if (!isFinite(value)) return "∞";
    return new Intl.NumberFormat(lang, {
      minimumFractionDigits: decimals || 0, maximumFractionDigits: decimals || 0, roundingMode: "halfEven"
    }).format(value);
  }

  function significant(value, digits) {
    if (!isFinite(value)) return "∞";
    if (value === 0) return number(0);
    var exponent = Number(Math.abs(value).toExponential((digits || 3) - 1).split("e")[1]);
    return number(value, Math.max(0, (digits || 3) - 1 - exponent));
  }

  function ends(low, high) { return low === high ? low : low + "–" + high; }
  function span(range, scale) {
    if (range === null) return data.words.unknown;
    return ends(significant(range[0] / (scale || 1)), significant(range[1] / (scale || 1)));
  }
  function gib(range) { return ends(number(range[0] / GIB, 2), number(range[1] / GIB, 2)); }
  function size(range) {
    if (range[1] >= GIB) return gib(range) + " GiB";
    return ends(number(range[0] / 1048576, 1), number(range[1] / 1048576, 1)) + " MiB";
  }
  function count(range, rounded) { return ends(number(rounded(range[0])), number(rounded(range[1]))); }

  // ---- elements

  function element(name, className, text) {
    var made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function field(name) { return document.getElementById("calc-" + name); }

  function options(name, groups, chosen) {
    var select = field(name);
    if (!select) return;
    select.textContent = "";
    groups.forEach(function (group) {
      if (!group.options.length) return;
      var into = select;
      if (group.label) {
        into = element("optgroup");
        into.label = group.label;
        select.appendChild(into);
      }
      group.options.forEach(function (one) {
        var option = element("option", "", one[1]);
        option.value = one[0];
        into.appendChild(option);
      });
    });
    select.value = chosen;
  }

  function table(heads, rows) {
    var scroll = element("div", "rb-table"), made = element("table", "rb-values");
    var top = made.createTHead().insertRow(), body = made.createTBody();
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", heads[0][0]);
    heads.forEach(function (head) {
      var cell = element("th", head[1] ? "rb-number" : "", head[0]);
      cell.scope = "col";
      top.appendChild(cell);
    });
    rows.forEach(function (row) {
      var line = body.insertRow();
      row.forEach(function (text, i) {
        var told = Array.isArray(text) ? text : [text, ""];
        var cell = element(i ? "td" : "th", heads[i][1] ? "rb-number" : "", told[0]);
        if (told[1]) cell.appendChild(element("small", "", told[1]));
        if (!i) cell.scope = "row";
        line.appendChild(cell);
      });
    });
    scroll.appendChild(made);
    return scroll;
  }

  function questions(pairs) {
    var list = element("dl", "rb-result__more");
    pairs.forEach(function (pair) {
      list.appendChild(element("dt", "", pair[0]));
      list.appendChild(element("dd", "", pair[1]));
    });
    return list;
  }

  /** Put an answer into its place: the sentence is spoken when it changes, the rest is there to be read. */
  function show(name, verdict, sentence, parts) {
    var place = document.getElementById(name + "-result"), answer = place.firstElementChild;
    place.dataset.verdict = verdict;
    if (answer.textContent !== sentence) answer.textContent = sentence;
    while (answer.nextSibling) place.removeChild(answer.nextSibling);
    parts.forEach(function (part) { if (part) place.appendChild(part); });
  }

  // ---- what is asked

  function asked() {
    var model = data.models[state.model], machine = data.machines[state.machine];
    var subject = data.subjects[state.subject];
    return {
      model: model, machine: machine, weights: model.weights[state.weights] || null, quantization: state.weights,
      layout: data.servers[state.server].layout, kv: state.kv, macos: state.macos,
      context: Number(state.context), users: Number(state.users),
      reserve: state.reserve === "" ? null : Number(state.reserve) * GIB,
      target_ms: Number(state.target) * 1000, cached_percent: Number(state.cached),
      prompt: Number(state.prompt), batch: Number(state.batch), law: subject ? subject.law : null
    };
  }

  function problemOf(name, text) {
    var limits = data.limits[name], value = Number(text), whole = WHOLE.indexOf(name) >= 0;
    if (name === "reserve" && text === "") return "";
    if (text !== "" && value >= limits[0] && value <= limits[1] && (!whole || Number.isInteger(value))) return "";
    return say(whole ? "problem_whole" : "problem_number", {
      low: limits[0] < 1 && limits[0] > 0 ? significant(limits[0], 1) : number(limits[0]), high: number(limits[1])
    });
  }

  function tell(name, problem) {
    var place = document.getElementById("calc-" + name + "-problem");
    if (!place) return;
    if (place.textContent !== problem) place.textContent = problem;
    if (problem) field(name).setAttribute("aria-invalid", "true"); else field(name).removeAttribute("aria-invalid");
  }

  // ---- memory

  function memory() {
    var q = asked(), told = theory.memory(q);
    if (told === null) return show("memory", "unknown", data.words.limit_unknown, []);
    if (told.weights === null) return show("memory", "unknown", data.words.fits_unknown, [memoryTable(q, told)]);
    var sentence, verdict;
    if (told.fits === null) {
      sentence = data.words.fits_perhaps;
      verdict = "perhaps";
    } else if (told.fits) {
      sentence = say("fits_yes", {needed: gib(told.needed), limit: gib(told.limit)});
      verdict = "yes";
    } else {
      sentence = say("fits_no", {needed: gib(told.needed), limit: gib(told.limit), lacking: gib(lacking(told.spare))});
      verdict = "no";
    }
    show("memory", verdict, sentence, [
      bar(told),
      questions([[data.words.ask_at_once, atOnce(q, told)], [data.words.ask_first, scarcity(q, told)]]),
      memoryTable(q, told),
      byKvType(q, told),
      command(q)
    ]);
  }

  function lacking(spare) { return [Math.max(0, -spare[1]), Math.max(0, -spare[0])]; }
  function left(spare) { return [Math.max(0, spare[0]), Math.max(0, spare[1])]; }

  function atOnce(q, told) {
    if (told.sequences[1] === 0) return data.words.at_once_none;
    if (told.sequences[0] === Infinity) return data.words.at_once_endless;
    return say("at_once", {count: count(told.sequences, Math.floor), tokens: number(q.context)});
  }

  function scarcity(q, told) {
    if (told.scarcity === "context") return say("first_context", {tokens: number(q.model.context_limit)});
    if (told.scarcity === "weights") return data.words.first_weights;
    if (told.scarcity === "arithmetic") return say("first_arithmetic", {batch: count(told.crossover, Math.ceil)});
    return say("first_memory", {count: count(told.sequences, Math.floor)});
  }

  function limitBasis(q, told) {
    if (told.limit_basis === "rule" && !q.macos) return data.words.basis_rules;
    return say("basis_" + told.limit_basis, {macos: q.macos || "26"});
  }

  function memoryTable(q, told) {
    var words = data.words, reserve = words.reserve_assumed;
    if (q.reserve !== null) reserve = words.reserve_set;
    else if (q.layout === "paged") reserve = words.reserve_paged;
    var rows = [[[words.limit, limitBasis(q, told)], gib(told.limit) + " GiB"]];
    if (told.weights !== null) {
      var basis = q.weights.basis === "rules" ? "by_rules" : q.weights.basis;
      var known = say("basis_" + basis, {quantization: q.quantization}) + "; " + words["counted_" + told.counted];
      rows.push([[words.weights, known], gib(told.weights) + " GiB"]);
      if (told.projector[1]) rows.push([words.projector, gib(told.projector) + " GiB"]);
    }
    rows.push([[words.reserve, reserve], gib(told.reserve) + " GiB"]);
    if (told.request !== null) {
      var token = say("token_bytes", {bytes: ends(number(told.token[0]), number(told.token[1]))});
      rows.push([[q.users === 1 ? words.caches_one : say("caches", {users: number(q.users)}),
        token + "; " + words["held_" + q.layout]], size(told.caches || told.request)]);
    }
    if (told.spare !== null) {
      if (told.spare[1] > 0) rows.push([words.left, gib(left(told.spare)) + " GiB"]);
      if (told.spare[0] < 0) rows.push([words.lacking, gib(lacking(told.spare)) + " GiB"]);
    }
    return table([[words.item, false], [words.size, true]], rows);
  }

  function byKvType(q, told) {
    var types = ["f16", "q8_0", "q4_0"];
    if (q.layout === "paged") types = ["f16", "fp8"];
    if (types.indexOf(q.kv) < 0) types.push(q.kv);
    var cells = types.map(function (kv) {
      var other = theory.memory(Object.assign({}, q, {kv: kv}));
      return [kv === "unknown" ? data.words.unknown : kv, other.sequences && count(other.sequences, Math.floor)];
    });
    return table(
      [[data.words.by_kv, false]].concat(cells.map(function (cell) { return [cell[0], true]; })),
      [[say("each", {tokens: number(q.context)})].concat(cells.map(function (cell) { return cell[1]; }))]
    );
  }

  /** The same question for a terminal; what only this report's runs know, no catalogue can be asked for. */
  function command(q) {
    if (q.model.own || q.machine.own) return null;
    var parts = ["python -m roofbook budget", state.model, "--quantization " + state.weights,
      "--machine " + state.machine, "--runtime " + state.server, "--kv " + state.kv, "--context " + q.context,
      "--users " + q.users];
    if (q.macos) parts.push("--macos " + q.macos);
    if (q.reserve !== null) parts.push("--reserve " + state.reserve);
    var line = element("p", "rb-note rb-result__command", data.words.command + " "), code = element("code");
    parts.forEach(function (part, i) {
      if (i) code.appendChild(document.createTextNode(" "));
      code.appendChild(element("span", "", part));
    });
    line.appendChild(code);
    return line;
  }

  /** A drawing of the table: the parts at their larger ends, the limit's two ends as lines. */
  function bar(told) {
    var parts = [["weights", told.weights[1] + told.projector[1]], ["caches", told.caches[1]], ["reserve", told.reserve[1]]];
    var full = Math.max(told.limit[1], told.needed[1]), drawing = element("div", "rb-bar");
    drawing.setAttribute("role", "img");
    drawing.setAttribute("aria-label", data.words.bar);
    parts.forEach(function (part) {
      var piece = element("span", "rb-bar__part rb-bar__part--" + part[0]);
      piece.style.width = 100 * part[1] / full + "%";
      drawing.appendChild(piece);
    });
    told.limit.forEach(function (end, i) {
      if (i && end === told.limit[0]) return;
      var line = element("span", "rb-bar__limit");
      line.style.left = "min(calc(100% - 2px), " + 100 * end / full + "%)";
      drawing.appendChild(line);
    });
    var key = element("ul", "rb-legend");
    [["weights", data.words.weights], ["caches", data.words.caches_bar], ["reserve", data.words.reserve],
      ["limit", data.words.limit]].forEach(function (one) {
      var line = element("li"), swatch = element("span", "rb-key rb-key--" + one[0]);
      swatch.setAttribute("aria-hidden", "true");
      line.appendChild(swatch);
      line.appendChild(document.createTextNode(one[1]));
      key.appendChild(line);
    });
    var both = element("div", "rb-bar__box");
    both.appendChild(drawing);
    both.appendChild(key);
    return both;
  }

  // ---- prompts

  function tokensOf(value) { return value === null ? data.words.law_endless : number(Math.floor(value)); }

  function freshOf(value, percent) {
    if (value === null || !isFinite(value)) return number(value);
    var tokens = Math.floor(value);
    return number(tokens - Math.floor(tokens * percent / 100));
  }

  function prompt() {
    var q = asked(), told = theory.prompts(q), law = told.law, rows = [], notes = misfit(q), sentence = data.words.law_nothing;
    var bound = told.datasheet || told.measured;
    if (bound !== null) sentence = say("law_none", {tokens: count(bound, Math.floor)});
    if (law !== null) {
      var band = say("law_band", {low: tokensOf(law.low), high: tokensOf(law.high)});
      sentence = say("law_tokens", {tokens: tokensOf(law.mid)}) + " (" + band + ")";
      if (law.mid === null) sentence = data.words.law_beyond;
      if (law.mid === 0) sentence = say("law_not_one", {ms: number(q.law.overhead_ms || 0)});
      rows.push([[data.words.row_law, band], tokensOf(law.mid), freshOf(law.mid, q.cached_percent)]);
      if (q.law.overhead_ms) notes.push(say("note_overhead", {ms: number(q.law.overhead_ms)}));
      if (law.mid > q.law.longest_tokens) notes.push(say("note_longest", {tokens: number(q.law.longest_tokens)}));
      if (state.kv !== data.subjects[state.subject].kv) {
        notes.push(say("note_kv", {kv: data.subjects[state.subject].kv.replace("unknown", data.words.unknown)}));
      }
    }
    ["measured", "datasheet"].forEach(function (side) {
      var range = told[side];
      if (range === null) return rows.push([data.words["row_" + side], data.words.unknown, ""]);
      rows.push([data.words["row_" + side], say("at_most", {tokens: count(range, Math.floor)}),
        ends(freshOf(range[0], q.cached_percent), freshOf(range[1], q.cached_percent))]);
    });
    var longest = law !== null ? law.mid : bound && bound[1];
    if (q.model.context_limit !== null && longest > q.model.context_limit) {
      notes.push(say("note_context", {tokens: number(q.model.context_limit)}));
    }
    show("prompt", "told", sentence, [
      table([[data.words.basis, false], [data.words.tokens, true], [data.words.fresh, true]], rows), noted(notes)
    ]);
  }

  function noted(notes) { return notes.length ? element("p", "rb-note", notes.join(" ")) : null; }

  /** What is fast on paper may not fit at all. */
  function misfit(q) {
    var told = theory.memory(q);
    return told !== null && told.scarcity === "weights" && told.sequences[1] === 0 ? [data.words.note_misfit] : [];
  }

  // ---- ceilings

  function ceiling() {
    var q = asked(), told = theory.ceilings(q);
    if (told === null) return show("ceiling", "unknown", data.words.fits_unknown, []);
    var best = told.datasheet, sentence = data.words.no_bandwidth;
    if (best.alone !== null) {
      sentence = say("alone", {empty: span(best.alone), full: span(best.alone_full), tokens: number(q.prompt)});
      if (q.batch > 1) {
        sentence += say("together", {
          users: number(q.batch), each: span(best.together, q.batch), together: span(best.together)
        });
      }
    }
    show("ceiling", best.alone === null ? "unknown" : "told", sentence, [
      questions([
        [data.words.ask_token, firstToken(q, best.prefill_ms)],
        [data.words.ask_bound, bound(q, told.crossover)],
        [data.words.ask_step, step(told)]
      ]),
      ceilingTable(q, told),
      noted(misfit(q))
    ]);
  }

  function firstToken(q, floor) {
    if (floor === null) return data.words.no_rate;
    return say("first_token", {
      seconds: span(floor, 1000), tokens: number(q.prompt), rate: floor[0] ? significant(60000 / floor[0], 2) : "∞"
    });
  }

  function bound(q, crossover) {
    if (crossover === null) return data.words.unknown;
    if (crossover[0] === Infinity) return data.words.bound_memory;
    var batch = count(crossover, Math.ceil);
    return say(q.batch >= crossover[1] ? "bound_arithmetic" : "bound_turns", {batch: batch});
  }

  function step(told) {
    var caches = told.step_bytes.map(function (end, i) { return Math.max(0, end - told.weight_bytes[i]); });
    return say("step", {
      read: span(told.step_bytes, GB), weights: span(told.weight_bytes, GB), caches: span(caches, GB),
      flops: span(told.step_flops, GB)
    });
  }

  function ceilingTable(q, told) {
    var sides = [told.datasheet, told.measured], words = data.words;
    function line(label, name, scale) {
      return [label].concat(sides.map(function (side) { return span(side[name], scale); }));
    }
    var rows = [
      line(words.row_bandwidth, "bandwidth", GB),
      line(words.row_flops, "flops", 1e12),
      line(words.col_alone, "alone"),
      line(say("col_full", {tokens: number(q.prompt)}), "alone_full")
    ];
    if (q.batch > 1) rows.push(line(say("col_together", {users: number(q.batch)}), "together"));
    rows.push(line(words.col_first, "prefill_ms", 1000));
    return table([[words.quantity, false], [words.by_datasheet, true], [words.by_measured, true]], rows);
  }

  // ---- fields and the address

  var ANSWERS = {memory: memory, prompt: prompt, ceiling: ceiling};

  function answer() {
    Object.keys(SECTIONS).forEach(function (name) {
      var problems = SECTIONS[name].map(function (one) {
        var problem = problemOf(one, state[one]);
        tell(one, problem);
        return problem;
      });
      if (problems.some(Boolean)) show(name, "mend", data.words.mend, []);
      else ANSWERS[name]();
    });
  }

  function named(ids, of) { return ids.map(function (id) { return [id, of[id].name || of[id].title || id]; }); }

  function grouped(of, groups) {
    return groups.map(function (group) {
      var ids = Object.keys(of).filter(function (id) { return group[1](of[id]); });
      return {label: group[0], options: named(ids, of)};
    });
  }

  function fill() {
    var words = data.words, model = data.models[state.model];
    var quantizations = Object.keys(model.weights);
    var subjects = [["", words.chosen]].concat(named(Object.keys(data.subjects), data.subjects));
    options("subject", [{options: subjects}], state.subject);
    options("model", grouped(data.models, [
      [words.own, function (one) { return one.own; }], [words.models, function (one) { return !one.own; }]
    ]), state.model);
    options("weights", [{options: (quantizations.length ? quantizations : ["unknown"]).map(function (name) {
      return [name, name === "unknown" ? words.unknown : name];
    })}], state.weights);
    options("machine", grouped(data.machines, [
      [words.own, function (one) { return one.own; }],
      [words.machines, function (one) { return !one.own && !one.discrete; }],
      [words.cards, function (one) { return !one.own && one.discrete; }]
    ]), state.machine);
    options("server", [{options: named(Object.keys(data.servers), data.servers)}], state.server);
    options("kv", [{options: data.kv_types.map(function (kv) {
      return [kv, kv === "unknown" ? words.unknown : kv];
    })}], state.kv);
    var limits = data.machines[state.machine].limits || {};
    options("macos", [{options: Object.keys(limits).sort().map(function (macos) {
      return [macos, macos || words.unknown];
    })}], state.macos);
    document.querySelector("[data-field=macos]").hidden = Object.keys(limits).length < 2;
    AMOUNTS.forEach(function (name) {
      var shown = NUMBER.test(state[name]) ? state[name] : "";
      if (field(name).value !== shown) field(name).value = shown;
    });
  }

  /** Bring the choices together: weights that this model has, a system that this machine runs, the subject they are. */
  function settle() {
    var quantizations = Object.keys(data.models[state.model].weights);
    if (quantizations.indexOf(state.weights) < 0) {
      state.weights = quantizations.indexOf("Q4_K_M") >= 0 ? "Q4_K_M" : quantizations[0] || "unknown";
    }
    var limits = data.machines[state.machine].limits || {};
    if (!limits[state.macos]) state.macos = "";
    if (!same(state.subject)) state.subject = Object.keys(data.subjects).filter(same)[0] || "";
  }

  function same(slug) {
    var subject = data.subjects[slug];
    return Boolean(subject) && ["model", "weights", "machine", "server"].every(function (name) {
      return (subject[name] || state[name]) === state[name];
    });
  }

  function take(slug) {
    var subject = data.subjects[slug];
    ["model", "weights", "machine", "server", "kv"].forEach(function (name) {
      if (subject[name]) state[name] = subject[name];
    });
    state.macos = subject.macos === null ? "" : String(subject.macos);
    state.subject = slug;
  }

  function known(name, value) {
    switch (name) {
      case "subject": return value === "" || Boolean(own(data.subjects, value));
      case "model": return Boolean(own(data.models, value));
      case "machine": return Boolean(own(data.machines, value));
      case "server": return Boolean(own(data.servers, value));
      case "kv": return data.kv_types.indexOf(value) >= 0;
      case "weights": return Boolean(own(data.models[state.model].weights, value));
      default: return value === "" || Boolean(own(data.machines[state.machine].limits || {}, value));
    }
  }

  function own(of, name) { return Object.prototype.hasOwnProperty.call(of, name) ? of[name] : undefined; }

  function fromAddress() {
    var wanted = new URLSearchParams(location.search), refused = {};
    CHOICES.concat(AMOUNTS).forEach(function (name) {
      if (!wanted.has(name)) return;
      var value = wanted.get(name);
      if (CHOICES.indexOf(name) < 0) state[name] = value;
      else if (!known(name, value)) refused[name] = value;
      else if (name === "subject" && value) take(value);
      else state[name] = value;
    });
    return refused;
  }

  function toAddress() {
    var told = new URLSearchParams(location.search);
    Object.keys(state).forEach(function (name) { told.set(name, state[name]); });
    try {
      history.replaceState(history.state, "", location.pathname + "?" + told + location.hash);
    } catch (refused) {
      return; // an old browser that changes no address of a file
    }
    keepInTwins();
  }

  function keepInTwins() {
    document.querySelectorAll("a[data-twin]").forEach(function (link) { link.search = location.search; });
  }

  function changed(event) {
    var name = event.target.name;
    if (!(name in state)) return;
    if (name === "subject" && event.target.value) take(event.target.value);
    else state[name] = event.target.value.trim();
    // A number field that holds no number says nothing of what it holds.
    if (event.target.validity && event.target.validity.badInput) state[name] = "?";
    settle();
    if (CHOICES.indexOf(name) >= 0) {
      fill();
      tell(name, "");
    }
    answer();
    toAddress();
  }

  function start() {
    data = JSON.parse(document.getElementById("calculator-data").content.textContent);
    theory = window.roofbookTheory(data);
    state = Object.assign({}, data.start);
    var refused = fromAddress();
    settle();
    fill();
    answer();
    Object.keys(refused).forEach(function (name) { tell(name, say("problem_link", {value: refused[name]})); });
    keepInTwins();
    document.querySelectorAll("form.rb-calc, .rb-calc form").forEach(function (form) {
      form.addEventListener("input", changed);
      form.addEventListener("submit", function (event) { event.preventDefault(); });
    });
    window.roofbookCalculator.data = data;
    window.roofbookCalculator.theory = theory;
  }

  window.roofbookCalculator = {start: start};
})();
