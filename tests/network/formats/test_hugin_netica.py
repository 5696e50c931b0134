"""Hugin's and Netica's files, as those programs and others write them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from format_cases import random_classifier

from milpbn.errors import InputError
from milpbn.network.formats.hugin_netica import read_dne, read_net, to_net
from milpbn.network.formats.plain_network import as_classifier

HUGIN = r"""class basenet
{
    inputs = ();  HR_Desc = "a ; \" } %";
    node A { label = ""; position = (457 413); states = ("State 1" "x; y"); HR_State_1 = ""; }
    discrete node B { states = ([1.5;2.5[ [2.5;7] ); }
    node C { subtype = interval; states = ("lo" "hi"); state_values = (-infinity 3 infinity); }
    potential (A |) { data = ( 10 90 ); } % weights
    potential (B | A C)
    {
        data = ((( 1 1 )	%  A=State 1
          ( 1, 3 )), ((2 2)(5 15)));
        experience = (1 2 3);
    }
    potential (C) { data = (1 3); }
}
"""


def test_hugins_weights_are_normalised_and_intervals_take_numbers():
    nodes = {node.name: node for node in read_net(HUGIN)}
    assert nodes["A"].states == ("State 1", "x; y")
    assert nodes["A"].table.tolist() == [0.1, 0.9]
    assert nodes["B"].states == ("[1.5;2.5[", "[2.5;7]")
    assert nodes["B"].parents == ("A", "C")
    assert nodes["B"].table.tolist() == [[[0.5, 0.5], [0.25, 0.75]]] * 2
    found = as_classifier(read_net(HUGIN), "B", "Hugin")
    rows = pd.DataFrame({"A": ["x; y"] * 3, "C": [2.999, 3.0, -1e9]})
    assert found.predict_proba(rows)[:, 0].tolist() == [0.5, 0.25, 0.5]


def test_our_nodes_have_places_of_their_own():
    lines = to_net(random_classifier(4)).splitlines()
    places = [line for line in lines if "position" in line]
    assert len(set(places)) == 6
    assert all(int(word) >= 0 for place in places for word in place.strip(" ;)").split("(")[1].split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "declares no variable"),
        ("hello", "Line 1 has 'hello' outside of every block"),
        ("net {}\nutility U {}", r"The node 'U' \(line 2\) is of the kind 'utility'"),
        ("net {}\nfunction (U | V) {}", r"The node 'U' \(line 2\) is of the kind 'function'"),
        ("net {}\ncontinuous node U {}", "'U' .* is of the kind 'continuous node'"),
        ("node A { states = (a b) }", "Line 1 has '}' where ';' is expected"),
        ("node A { states = (a b); ", "cut off"),
        (
            "node A { states = (a b); } potential (A B) { data = (1 1); }",
            "'A' .* has no data, or several nodes",
        ),
        ("node A { states = (a b); } potential (A | Q) { data = (1 1); }", "'A' .* names 'Q'"),
        ("node A { states = (a b); } potential (A) { data = (1 x); }", "'x' in a list of numbers"),
        ("node A { states = (a b); } potential (A) { data = (1); }", "has 1 values, but needs 2"),
        ("node A { states = (a b); }", "no table of 'A'"),
        (HUGIN.replace("-infinity 3", "4 3"), "'C' .* has no edges of intervals"),
        (HUGIN.replace("potential (C)", "potential (A)"), "table of 'A' .* is its second one"),
        ("a {" * 2000, "has '{' where none"),
        ("class M { " + HUGIN + "instance S_1 : Sub (X = A; Y) {} }", "'S_1', an instance of a class"),
        ("class M { instance S_1 : Sub (); node A { states = (a b); } }", "Line 1 has 'S_1', an instance"),
    ],
)
def test_what_is_no_network_of_hugin_is_refused(text, said):
    with pytest.raises(InputError, match=said):
        read_net(text)


NETICA = r"""// ~->[DNET-1]->~
bnet My_net {
AutoCompile = TRUE;
visual V1 { defdispform = BELIEFBARS; comment = "a }; \
  b"; nodefont = font {shape= "Arial"; size= 9;}; NodeSet Node {BuiltIn = 1; Color = 0xc0c0c0;};
  PrinterSetting A { margins = (1270, 1270); }; };
node Rain {
  kind = NATURE; discrete = TRUE; states = (dry, mid, wet); parents = ();
  probs = // dry mid
    (0.2, 0.3, 0.5);
  title = "x"; belief = (0.2, 0.3, 0.5);
  visual V1 { center = (1, 2); link 1 { path = ((1, 2), (3, 4)); }; font = font {size= 18;}; };
  };
node Flow { kind = NATURE; discrete = FALSE; chance = DETERMIN; levels = (0, 10, 20, INFINITY); parents = (Rain);
  functable = (5, #1, 25); };
node Bloom { kind = NATURE; discrete = FALSE; states = (lo, hi); levels = (0, 10, 20); inputs = (, R);
  parents = (Rain, Flow); probs = (((0.1, 0.9), (0.2, 0.8), @imposs, 1), ((0.1, 0.9), (0.1, 0.9), (#0)),
  0.1, 0.9, 0.1, 0.9, 0.5, 0.5); };
node Year { kind = NATURE; discrete = TRUE; levels = (2020, 2030.5); parents = (); probs = (1, 0); };
node Down { kind = NATURE; discrete = FALSE; levels = (INFINITY, 7, 2); parents = (); probs = (.5, .5); };
node Coin { kind = NATURE; discrete = TRUE; numstates = 2; parents = (); probs = (.5, .5); };
node TITLE1 { kind = CONSTANT; discrete = FALSE; title = "t"; };
};
"""


def test_neticas_functions_levels_and_unnamed_states_are_read():
    nodes = {node.name: node for node in read_dne(NETICA)}
    assert nodes["Flow"].states == ("[0, 10)", "[10, 20)", "[20, inf)")
    assert nodes["Flow"].table.tolist() == np.eye(3).tolist()
    assert nodes["Bloom"].states == ("lo", "hi")
    expected = [
        [[0.1, 0.9], [0.2, 0.8], [0, 1]],
        [[0.1, 0.9]] * 2 + [[1, 0]],
        [[0.1, 0.9]] * 2 + [[0.5, 0.5]],
    ]
    assert nodes["Bloom"].table.tolist() == expected
    assert nodes["Year"].states == ("2020", "2030.5")
    assert nodes["Down"].states == ("[7, inf)", "[2, 7)")
    assert nodes["Coin"].states == ("state0", "state1")
    found = as_classifier(read_dne(NETICA), "Rain", "Netica")
    rows = pd.DataFrame({"Flow": [5, 10.0, 19.9, 20], "Bloom": [9.99, 10, 200, 3]})
    assert found.predict(rows.assign(Year=2020, Down=3, Coin="state1")).tolist() == [
        "dry",
        "mid",
        "mid",
        "wet",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("bnet", "net"), "no block 'bnet'"),
        (("NATURE; discrete = TRUE; numstates", "DECISION; numstates"), "'Coin' .* is of the kind DECISION"),
        (("(Rain, Flow)", "(Rain, )"), "'Bloom' .* has an input without a node"),
        (("(5, #1, 25)", "(5, #1, -1)"), "Line 15 has '-1' in the table of 'Flow'"),
        (("functable", "equation"), "'Flow' .* has no table"),
        (("numstates = 2", "numstates = many"), "'Coin' has no states"),
        (("font {size= 18;}", "font {size= 18;} 3"), "Line 12 has '3' after a block"),
        (("font {size= 18;}", "font " * 2 + "{size= 18;}"), "has '{' where ';' is expected"),
        (("levels = (0, 10, 20)", "levels = (0, 10, x)"), "'x' in a list of numbers"),
        (("levels = (0, 10, 20)", "levels = (0, 10)"), "has 2 states, but 1 intervals"),
    ],
)
def test_what_is_no_network_of_netica_is_refused(change, said):
    with pytest.raises(InputError, match=said):
        read_dne(NETICA.replace(*change))
