/* A figure to take away: as a picture with its title, legend and source in it, light or dark, for a blog or slides; as a
   Vega-Lite file; as a citation. Made here from what the page holds, so the site carries no second copy of any figure. */
(function () {
  "use strict";

  var SVG = "http://www.w3.org/2000/svg";
  var PAD = 26, WIDTH = 700, PNG_SCALE = 2;
  var ruler = document.createElement("canvas").getContext("2d");

  // -- colours: a picture has real ones, whatever palette the page is read in

  function palette(scheme) {
    var probe = document.createElement("div");
    probe.dataset.mdColorScheme = scheme;
    probe.hidden = true;
    document.body.appendChild(probe);
    var style = getComputedStyle(probe);
    var colour = function (name) { return style.getPropertyValue(name).trim(); };
    return {of: colour, drop: function () { probe.remove(); }};
  }

  function painted(text, scheme) {
    var colours = palette(scheme);
    var done = text.replace(/var\((--[\w-]+)\)/g, function (whole, name) { return colours.of(name) || whole; });
    colours.drop();
    return done;
  }

  // -- the picture

  function node(name, attributes, text) {
    var made = document.createElementNS(SVG, name);
    Object.keys(attributes).forEach(function (key) { made.setAttribute(key, attributes[key]); });
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // An address has no blank to break it at.
  function pieces(word, width) {
    var fit = word.length;
    while (fit > 1 && ruler.measureText(word.slice(0, fit)).width > width) fit -= 1;
    return fit === word.length ? [word] : [word.slice(0, fit)].concat(pieces(word.slice(fit), width));
  }

  function lines(text, font, width) {
    ruler.font = font;
    return text.trim().split(/\s+/).flatMap(function (word) { return pieces(word, width); }).reduce(function (all, word) {
      var longer = all.length ? all[all.length - 1] + " " + word : word;
      if (all.length && ruler.measureText(longer).width <= width) all[all.length - 1] = longer;
      else all.push(word);
      return all;
    }, []);
  }

  function paragraph(into, text, top, style, family) {
    lines(text, style.weight + " " + style.size + "px " + family, WIDTH).forEach(function (line) {
      into.appendChild(node("text", {
        x: PAD, y: top + style.size, "font-size": style.size, "font-weight": style.weight, fill: style.fill
      }, line));
      top += Math.round(style.size * 1.45);
    });
    return top;
  }

  function swatch(kind, colour, x, y) {
    var round = {cx: x + 9, cy: y, stroke: colour, "stroke-width": 2};
    if (kind === "dot") return node("circle", Object.assign(round, {r: 4, fill: colour}));
    if (kind === "hollow") return node("circle", Object.assign(round, {r: 4, fill: "var(--chart-paper)"}));
    if (kind === "small") return node("circle", Object.assign(round, {r: 2, fill: colour}));
    if (kind === "band") return node("rect", {x: x, y: y - 5, width: 18, height: 10, fill: colour, opacity: 0.22});
    if (kind === "range") return node("path", {d: "M" + (x + 9) + " " + (y - 7) + "v14", stroke: colour, "stroke-width": 2});
    return node("path", {
      d: "M" + x + " " + y + "h18", stroke: colour, "stroke-width": 2, "stroke-dasharray": kind === "dashed" ? "4 3" : "none"
    });
  }

  function legend(into, figure, top, family) {
    var x = PAD, size = 12.5;
    ruler.font = "400 " + size + "px " + family;
    figure.querySelectorAll(".rb-legend li").forEach(function (item) {
      var text = item.textContent.trim(), width = 24 + ruler.measureText(text).width;
      if (x > PAD && x + width > PAD + WIDTH) { x = PAD; top += 19; }
      var mark = item.querySelector(".rb-swatch");
      var kind = mark.className.replace(/.*rb-swatch--(\w+).*/, "$1");
      into.appendChild(swatch(kind, mark.style.getPropertyValue("--swatch"), x, top + 8));
      into.appendChild(node("text", {x: x + 24, y: top + 12.5, "font-size": size, fill: "var(--chart-muted)"}, text));
      x += width + 18;
    });
    return figure.querySelector(".rb-legend li") ? top + 24 : top;
  }

  function picture(figure, scheme) {
    var family = getComputedStyle(figure).fontFamily;
    var chart = figure.querySelector(".rb-static--wide svg").cloneNode(true);
    var root = node("svg", {xmlns: SVG, "font-family": family});
    var paper = root.appendChild(node("rect", {fill: "var(--chart-paper)"}));
    var muted = {size: 11.5, weight: 400, fill: "var(--chart-muted)"};
    var top = paragraph(root, words(figure, ".rb-figure__message"), PAD - 4, {size: 17, weight: 700, fill: "var(--chart-ink)"}, family);
    top = legend(root, figure, top + 5, family);
    var box = chart.viewBox.baseVal;
    ["aria-hidden", "focusable", "class", "style"].forEach(function (name) { chart.removeAttribute(name); });
    Object.entries({x: PAD, y: top, width: box.width, height: box.height}).forEach(function (one) {
      chart.setAttribute(one[0], one[1]);
    });
    root.appendChild(chart);
    top = paragraph(root, words(figure, ".rb-figure__caption"), top + box.height + 6, muted, family);
    top = paragraph(root, source(figure), top + 2, muted, family) + PAD - 10;
    var width = WIDTH + 2 * PAD;
    root.setAttribute("viewBox", "0 0 " + width + " " + top);
    [root, paper].forEach(function (one) { one.setAttribute("width", width); one.setAttribute("height", top); });
    return {svg: painted(new XMLSerializer().serializeToString(root), scheme), width: width, height: top};
  }

  function words(figure, selector) { return figure.querySelector(selector).textContent.trim(); }
  function address(figure) { return location.href.split("#")[0] + "#" + figure.id; }
  function published() { return /^https?:$/.test(location.protocol); }
  function source(figure) {
    return words(figure, ".rb-cite__site") + (published() ? " · " + address(figure) : "");
  }

  function png(drawn) {
    return new Promise(function (resolve, reject) {
      var image = new Image();
      image.onerror = reject;
      image.onload = function () {
        var canvas = document.createElement("canvas");
        canvas.width = drawn.width * PNG_SCALE;
        canvas.height = drawn.height * PNG_SCALE;
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob(resolve, "image/png");
      };
      image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(drawn.svg);
    });
  }

  // -- taking it

  function save(blob, name) {
    var link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 10000);
  }

  function spec(figure) {
    var held = figure.querySelector("template.rb-spec").content.textContent;
    return painted(JSON.stringify(JSON.parse(held), null, 1), "default");
  }

  function cited(figure) {
    return words(figure, ".rb-cite").replace(/\s+/g, " ");
  }

  function copy(text) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    return Promise.reject(new Error("no clipboard"));
  }

  function take(figure, button) {
    var kind = button.dataset.take, scheme = button.dataset.scheme;
    var name = figure.querySelector(".rb-take").dataset.name + (scheme === "slate" ? "-dark" : "");
    if (kind === "spec") return save(new Blob([spec(figure)], {type: "application/json"}), name + ".vl.json");
    if (kind === "svg") return save(new Blob([picture(figure, scheme).svg], {type: "image/svg+xml"}), name + ".svg");
    if (kind === "png") return png(picture(figure, scheme)).then(function (blob) { save(blob, name + ".png"); });
    return copy(cited(figure)).then(function () {
      button.textContent = button.dataset.done;
    }, function () {
      getSelection().selectAllChildren(figure.querySelector(".rb-cite")); // one key away
    });
  }

  document.querySelectorAll(".rb-figure").forEach(function (figure) {
    if (published()) figure.querySelector(".rb-cite__address").textContent = address(figure);
    figure.querySelectorAll("button[data-take]").forEach(function (button) {
      button.hidden = false;
      button.addEventListener("click", function () { take(figure, button); });
    });
  });
})();
