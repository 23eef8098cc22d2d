/* What a page does beyond being read: charts become live when they come near, dates tell their age, the language switch
   keeps the place. Without this script the page is whole; nothing here is fetched from elsewhere. */
(function () {
  "use strict";
  // Asked for in the head, so as not to wait for the theme's scripts, and at the end, where other site builders put it.
  if (window.roofbookReport) return;
  window.roofbookReport = true;

  var NEAR = "300px";
  var bundle; // one promise for the whole page

  function load(address) {
    bundle = bundle || new Promise(function (resolve, reject) {
      var script = document.createElement("script");
      script.src = address;
      script.onload = function () { resolve(window.roofbookVega.embed); };
      script.onerror = reject;
      document.head.appendChild(script);
    });
    return bundle;
  }

  function enliven(figure) {
    var place = figure.querySelector(".rb-live");
    var spec = JSON.parse(figure.querySelector("template.rb-spec").content.textContent);
    load(figure.dataset.vega).then(function (embed) {
      place.hidden = false;
      // ast: expressions are interpreted, so the page needs no eval. The page has its own links, so no menu.
      return embed(place, spec, {actions: false, renderer: "svg", ast: true, tooltip: {theme: "custom"}});
    }).then(function () {
      figure.classList.add("rb-figure--live");
      place.querySelector("svg").setAttribute("aria-hidden", "true");
    }).catch(function (problem) {
      place.hidden = true; // the static picture stays
      console.warn("The chart stays a picture:", problem);
    });
  }

  // Figures are met as the page comes in: the first one need not wait for the last line.
  function watchFigures() {
    var met = new Set();
    var near = new IntersectionObserver(function (entries) {
      entries.forEach(function (entry) {
        if (!entry.isIntersecting) return;
        near.unobserve(entry.target);
        enliven(entry.target);
      });
    }, {rootMargin: NEAR});
    function meet() {
      document.querySelectorAll(".rb-figure").forEach(function (figure) {
        if (met.has(figure) || !figure.querySelector(".rb-spec ~ *")) return; // its chart is not all here yet
        met.add(figure);
        near.observe(figure);
      });
    }
    var coming = new MutationObserver(meet);
    coming.observe(document.documentElement, {childList: true, subtree: true});
    whenRead(function () {
      coming.disconnect();
      meet();
    });
    meet();
  }

  function whenRead(act) {
    if (document.readyState !== "loading") return act();
    document.addEventListener("DOMContentLoaded", act);
  }

  function tellAges() {
    var lang = document.documentElement.lang;
    var relative = new Intl.RelativeTimeFormat(lang, {numeric: "auto"});
    document.querySelectorAll("time.rb-age").forEach(function (time) {
      var days = Math.round((Date.parse(time.getAttribute("datetime")) - Date.now()) / 86400000);
      if (isNaN(days)) return;
      var told = Math.abs(days) < 60 ? relative.format(days, "day")
        : Math.abs(days) < 730 ? relative.format(Math.round(days / 30.44), "month")
        : relative.format(Math.round(days / 365.25), "year");
      time.insertAdjacentText("afterend", " (" + told + ")");
    });
  }

  // The anchors are the same in both languages.
  function keepPlace() {
    document.querySelectorAll("a[data-twin]").forEach(function (link) {
      link.hash = location.hash;
    });
  }

  // The theme's search is a dialog without a name.
  function nameSearch() {
    var search = document.querySelector(".md-search[role=dialog]");
    var input = search && search.querySelector("input[aria-label], input[placeholder]");
    if (input) search.setAttribute("aria-label", input.getAttribute("aria-label") || input.placeholder);
  }

  watchFigures();
  whenRead(function () {
    nameSearch();
    tellAges();
    keepPlace();
  });
  window.addEventListener("hashchange", keepPlace);
})();
